package oslo

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// mustParse parses text that oslo.config accepts.
func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return cfg
}

func TestParseReadsValuesLikeOsloConfig(t *testing.T) {
	tests := []struct {
		name, text, section, key string
		want                     []string
	}{
		{"an option has its value without spaces around", "[a]\nk =  v w \n", "a", "k", []string{"v w"}},
		{"a colon separates as well", "[a]\nk: v\n", "a", "k", []string{"v"}},
		{"the first separator counts", "[a]\nk = http://x\n", "a", "k", []string{"http://x"}},
		{"a repeated key has all its values in order", "[a]\nk = 1\nk = 2\n", "a", "k", []string{"1", "2"}},
		{"a reopened section continues", "[a]\nk = 1\n[b]\n[a]\nk = 2\n", "a", "k", []string{"1", "2"}},
		{"an indented line continues the value after a newline", "[a]\nk = 1\n  2\n\t3\n", "a", "k", []string{"1\n2\n3"}},
		{"an indented comment is part of the value", "[a]\nk = 1\n  # 2\n", "a", "k", []string{"1\n# 2"}},
		{"a comment behind a value is part of it", "[a]\nk = 1 # 2\n", "a", "k", []string{"1 # 2"}},
		{"equal quotes around the value are dropped once", "[a]\nk = \"'v'\"\n", "a", "k", []string{"'v'"}},
		{"a lone quote is an empty value", "[a]\nk = '\n", "a", "k", []string{""}},
		{"different quotes stay", "[a]\nk = \"v'\n", "a", "k", []string{"\"v'"}},
		{"a carriage return ends a line", "[a]\rk = 1\r 2\r\nk = 3\n", "a", "k", []string{"1\n2", "3"}},
		{"a form feed does not end a line", "[a]\nk = 1\x0c2\n", "a", "k", []string{"1\x0c2"}},
		{"an ASCII separator is space to trim", "[a]\n\x1fk\x1f=\x1fv\x1f\n", "a", "k", []string{"v"}},
		{"section names keep inner spaces", "[ a ]\nk = v\n", " a ", "k", []string{"v"}},
		{"section names differ in case only by spelling", "[Ab]\nk = 1\n[aB]\nk = 2\n[Ab]\nk = 3\n", "AB", "k", []string{"1", "2", "3"}},
		{"the lower-case default section is another one", "[default]\nk = 1\n", "DEFAULT", "k", nil},
		{"keys are case-sensitive", "[a]\nK = 1\n", "a", "k", nil},
		{"an option that is not set has no values", "[a]\n", "a", "k", nil},
		{"an empty value is a value", "[a]\nk =\n", "a", "k", []string{""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := mustParse(t, test.text).Get(test.section, test.key)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("Get(%q, %q) = %q, want %q", test.section, test.key, got, test.want)
			}
		})
	}
}

func TestParseKeepsSectionsInOrderWithLines(t *testing.T) {
	cfg := mustParse(t, "# note\n[b]\nk = 1\n\n[a]\n[b]\nl = 2\n  3\nk = 4\n")
	want := []Section{
		{Name: "b", Options: []Option{
			{Key: "k", Values: []Value{{Text: "1", Line: 3}, {Text: "4", Line: 9}}},
			{Key: "l", Values: []Value{{Text: "2\n3", Line: 7}}},
		}},
		{Name: "a"},
	}
	if got := cfg.Sections(); !reflect.DeepEqual(got, want) {
		t.Errorf("Sections() = %+v, want %+v", got, want)
	}
}

func TestParseErrorsSayWhereWhatAndHowToMend(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{
			"a line without separator names the key it seems to mean", "[DEFAULT]\n\ndebug\n",
			[]string{`line 3: "debug" is neither "[section]" nor "key = value"; write "debug = <value>" or start the line with "#" if it is a comment`},
		},
		{
			"a line that begins with no name gets a neutral remedy", "[DEFAULT]\n--debug\n",
			[]string{`line 2: "--debug" is neither "[section]" nor "key = value"; write "key = <value>" or start the line with "#" if it is a comment`},
		},
		{
			"a value without key is hidden, as it may be a secret", "[a]\n= v\n: w\n=\n",
			[]string{`line 2: "=***" ` + reasonNoKey, `line 3: ":***" ` + reasonNoKey, `line 4: "=" ` + reasonNoKey},
		},
		{
			"a blank line cuts a continuation off", "[a]\nk = 1\n\n  2\n  3\n",
			[]string{`line 4: "  2" ` + reasonOrphan, `line 5: "  3" ` + reasonOrphan},
		},
		{
			"a comment behind a header breaks it", "[a] # note\nk = 1\n",
			[]string{`line 1: "[a] # note" ` + reasonUnclosed},
		},
		{
			"an empty header names nothing", "[]\n",
			[]string{`line 1: "[]" ` + reasonUnnamed},
		},
		{
			"a missing section is reported once, at the first option", "# note\na = 1\n  2\nb = 2\n[c]\nd = 3\n",
			[]string{`line 2: "a = 1" ` + reasonNoSection},
		},
		{
			"options under a rejected header are not reported", "[a\nk = 1\n[]\nk = 2\n",
			[]string{`line 1: "[a" ` + reasonUnclosed, `line 3: "[]" ` + reasonUnnamed},
		},
		{
			"continuations of a rejected line are not reported", "[a]\nk\n  1\n  2\n\n  3\n",
			[]string{`line 2: "k" ` + reasonNoSeparator("k"), `line 6: "  3" ` + reasonOrphan},
		},
		{
			"all mistakes are reported in line order", "k = 1\nl\n[a]\n  m\nn = 2\n[b\n",
			[]string{
				`line 1: "k = 1" ` + reasonNoSection, `line 2: "l" ` + reasonNoSeparator("l"),
				`line 4: "  m" ` + reasonOrphan, `line 6: "[b" ` + reasonUnclosed,
			},
		},
		{
			"a byte order mark is named, not the header it spoils", "\ufeff[a]\nk = 1\n",
			[]string{`line 1: "\ufeff[a]" ` + reasonBOM},
		},
		{
			"a byte order mark before an option needs a header as well", "\ufeffk = 1\nl = 2\n",
			[]string{`line 1: "\ufeffk = 1" ` + reasonBOM},
		},
		{
			"a byte order mark further down is an odd letter", "# note\n\ufeff[a]\n",
			[]string{`line 2: "\ufeff[a]" ` + reasonNoSeparator("\ufeff[a]")},
		},
		{
			"bytes that are no UTF-8 are shown as replacement", "[a]\nk = \xe9\n",
			[]string{"line 2: \"k = \ufffd\" " + reasonNotUTF8},
		},
		{
			"invisible characters are made visible", "[a]\n\u200b\u00a0b\x00\n",
			[]string{`line 2: "\u200b\u00a0b\x00" ` + reasonNoSeparator("\u200b")},
		},
		{
			"a carriage return counts as a line end", "[a]\rk\r\nl = 1\n",
			[]string{`line 2: "k" ` + reasonNoSeparator("k")},
		},
		{
			"a long line is cut", "[a]\n" + strings.Repeat("é ", 200) + "\n",
			[]string{`line 2: "` + strings.Repeat("é ", maxQuoted/2) + `…" ` + reasonNoSeparator("é")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := Parse(test.text)
			if err == nil || cfg != nil {
				t.Fatalf("Parse(%q) = %v, %v, want nil and an error", test.text, cfg, err)
			}
			if got := err.Error(); got != strings.Join(test.want, "\n") {
				t.Errorf("Parse(%q) fails with\n%s\nwant\n%s", test.text, got, strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestErrorsAreTypedAndTheirMessageBounded(t *testing.T) {
	_, err := Parse("[a]\n" + strings.Repeat("x\n", 5000))
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != maxErrors {
		t.Fatalf("got %T with %d errors, want Errors with %d", err, len(errs), maxErrors)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxShown+1 || lines[maxShown] != "and 990 more" {
		t.Errorf("message has %d lines and ends in %q", len(lines), lines[len(lines)-1])
	}
	var first *ParseError
	if !errors.As(err, &first) || first.Line != 2 || first.Text != "x" {
		t.Errorf("first error is %+v, want line 2", first)
	}
}
