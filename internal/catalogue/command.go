package catalogue

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Command prints what ParseLog reads, in an image of nova: the generator of oslo.config does
// not know by itself which namespaces an image has. An image without it prints Missing.
const Command = `type python3 oslo-config-generator >/dev/null 2>&1 || { echo ` + missing + `; exit 0; }
python3 -W ignore -c 'from importlib import metadata
found = metadata.entry_points()
found = found.select(group="oslo.config.opts") if hasattr(found, "select") else found["oslo.config.opts"]
print("\n".join(sorted({"--namespace=" + point.name for point in found})))' >/tmp/namespaces 2>/dev/null &&
mapfile -t namespaces </tmp/namespaces &&
oslo-config-generator --format json "${namespaces[@]}" --output-file /tmp/options >/dev/null &&
cat /tmp/options`

const missing = "oslo-config-generator: missing"

// ErrMissing says that an image has no generator.
var ErrMissing = errors.New("the image has no python3 or no oslo-config-generator")

// ParseLog is Parse for what Command has printed, next to what libraries have.
func ParseLog(log io.Reader) (*Catalogue, error) {
	lines := bufio.NewReader(io.LimitReader(log, maxGenerated))
	for {
		start, err := lines.Peek(1)
		if err == nil && start[0] == '{' {
			return Parse(lines)
		}
		line, err := lines.ReadBytes('\n')
		switch {
		case bytes.Equal(bytes.TrimSpace(line), []byte(missing)):
			return nil, ErrMissing
		case err != nil:
			return nil, errors.New("oslo-config-generator printed no options")
		}
	}
}
