package oslo

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParse(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := Parse(text)
		if err != nil {
			errs, ok := err.(Errors)
			if !ok || cfg != nil {
				t.Fatalf("Parse = %v, %T, want nil and Errors", cfg, err)
			}
			checkErrors(t, text, errs)
			return
		}
		checkConfig(t, text, cfg)
	})
}

// checkErrors checks what holds for the errors of any text.
func checkErrors(t *testing.T, text string, errs Errors) {
	lines := len(slices.Collect(strings.Lines(universalNewlines.Replace(text))))
	last := 0
	for _, e := range errs {
		if e.Line <= last || e.osloLine < e.Line || e.osloLine > lines {
			t.Errorf("line %d (%d in oslo) after %d, of %d lines", e.Line, e.osloLine, last, lines)
		}
		last = e.Line
		if e.Reason == "" || !utf8.ValidString(e.Error()) || strings.ContainsAny(e.Error(), "\n\r") {
			t.Errorf("message not fit for one line: %q", e.Error())
		}
	}
}

// checkConfig checks rewritings that must not change what a good text says.
func checkConfig(t *testing.T, text string, cfg *Config) {
	if cfg.Text() != text {
		t.Errorf("Text() = %q, want the text as given", cfg.Text())
	}
	sections := cfg.Sections()
	unix := universalNewlines.Replace(text)
	for _, same := range []string{
		text + "\n", text + "\n# note\n", "# note\n" + text, unix, strings.ReplaceAll(unix, "\n", "\r\n"),
	} {
		if !reflect.DeepEqual(values(mustParse(t, same)), values(cfg)) {
			t.Errorf("%q says something else", same)
		}
	}
	twice := Merge(cfg, cfg)
	if again := mustParse(t, twice.Text()); !reflect.DeepEqual(values(again), values(twice)) {
		t.Errorf("merged text parses to %v, want %v", values(again), values(twice))
	}
	for _, s := range sections {
		for _, o := range s.Options {
			one := cfg.Get(s.Name, o.Key)
			if len(one) < len(o.Values) || !reflect.DeepEqual(twice.Get(s.Name, o.Key), slices.Concat(one, one)) {
				t.Errorf("[%s] %s has %q, merged with itself %q", s.Name, o.Key, one, twice.Get(s.Name, o.Key))
			}
		}
	}
}
