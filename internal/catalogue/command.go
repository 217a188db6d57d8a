package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Command prints what ParseLog reads, in an image of nova: the generator of oslo.config does
// not know by itself which namespaces an image has, and does not print whether an option is
// multi-valued (oslo_config/generator.py, _build_entry). An image without it says so. The last line
// is End: a log without it breaks off.
const Command = `type python3 oslo-config-generator >/dev/null 2>&1 || { echo ` + missing + `; echo ` + End + `; exit 0; }
python3 -W ignore -c 'from importlib import metadata
found = metadata.entry_points()
found = found.select(group="oslo.config.opts") if hasattr(found, "select") else found["oslo.config.opts"]
print("\n".join(sorted({"--namespace=" + point.name for point in found})))' >/tmp/namespaces 2>/dev/null &&
mapfile -t namespaces </tmp/namespaces &&
python3 -c 'import sys
from oslo_config import generator
if hasattr(generator, "_build_entry"):
    build = generator._build_entry
    generator._build_entry = lambda opt, *others: dict(build(opt, *others), multi=opt.multi)
generator.main(sys.argv[1:])' --format json "${namespaces[@]}" --output-file /tmp/options >/dev/null &&
cat /tmp/options &&
printf '\n%s\n' ` + End + `
`

const missing = "oslo-config-generator: missing"

// End is the last line that Command prints.
const End = "oslo-config-generator:end"

// ErrMissing says that an image has no generator.
var ErrMissing = errors.New("the image has no python3 or no oslo-config-generator")

// ErrIncomplete says that a log breaks off. The whole log may be read the next time.
var ErrIncomplete = errors.New("the log breaks off")

// ParseLog is Parse for what Command has printed, next to what libraries have. Errors other than
// ErrIncomplete are final.
func ParseLog(log io.Reader) (*Catalogue, error) {
	printed, err := io.ReadAll(io.LimitReader(log, maxGenerated+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	case len(printed) > maxGenerated:
		return nil, fmt.Errorf("the image printed more than %d MiB", maxGenerated>>20)
	}
	whole := false
	for rest := printed; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		whole = whole || string(bytes.TrimSpace(line)) == End
	}
	if !whole {
		return nil, ErrIncomplete
	}
	return parsePrinted(printed)
}

// parsePrinted reads a log that is complete.
func parsePrinted(printed []byte) (*Catalogue, error) {
	for len(printed) > 0 {
		if printed[0] == '{' {
			return Parse(bytes.NewReader(printed))
		}
		var line []byte
		line, printed, _ = bytes.Cut(printed, []byte("\n"))
		if string(bytes.TrimSpace(line)) == missing {
			return nil, ErrMissing
		}
	}
	return nil, errors.New("oslo-config-generator printed no options")
}
