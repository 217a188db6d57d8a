package catalogue_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
)

func TestParseLog(t *testing.T) {
	generated, err := os.ReadFile("testdata/generated.json")
	if err != nil {
		t.Fatal(err)
	}
	options, end := string(generated), "\n"+catalogue.End+"\n"
	reset := errors.New("stream reset")
	for name, c := range map[string]struct {
		log     io.Reader
		want    error
		message string // of an error that is final
	}{
		"the whole log":                       {strings.NewReader("a library says\n" + options + end), nil, ""},
		"what follows the end":                {strings.NewReader(options + end + "a library says"), nil, ""},
		"an image without the generator":      {strings.NewReader("oslo-config-generator: missing" + end), catalogue.ErrMissing, ""},
		"no options":                          {strings.NewReader("a library says" + end), nil, "printed no options"},
		"no JSON":                             {strings.NewReader("{x" + end), nil, "invalid character"},
		"a log that breaks off":               {strings.NewReader(options[:len(options)/2]), catalogue.ErrIncomplete, ""},
		"a log that breaks off at the start":  {strings.NewReader(""), catalogue.ErrIncomplete, ""},
		"a log that breaks off in its end":    {strings.NewReader(options + end[:9]), catalogue.ErrIncomplete, ""},
		"a stream that breaks off":            {io.MultiReader(strings.NewReader(options[:100]), iotest.ErrReader(reset)), catalogue.ErrIncomplete, ""},
		"a stream that breaks off at the end": {io.MultiReader(strings.NewReader(options+end), iotest.ErrReader(reset)), catalogue.ErrIncomplete, ""},
	} {
		t.Run(name, func(t *testing.T) {
			known, err := catalogue.ParseLog(c.log)
			expected := errors.Is(err, c.want)
			if c.message != "" {
				expected = err != nil && strings.Contains(err.Error(), c.message) && !errors.Is(err, catalogue.ErrIncomplete)
			}
			if !expected || (err == nil) != (known != nil) {
				t.Errorf("ParseLog = %v, %v; want error %v %s", known != nil, err, c.want, c.message)
			}
		})
	}
}
