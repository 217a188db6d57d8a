package oslo

import (
	"reflect"
	"testing"
)

func TestMergeHasTheValuesOfAllFilesInOrder(t *testing.T) {
	first := mustParse(t, "[a]\nk = 1\nk = 2\n[b]\nl = 3")
	second := mustParse(t, "[A]\nk = 4\n")
	third := mustParse(t, "# note\n[a]\nk = 5\n[c]\n")
	tests := []struct {
		name         string
		cfg          *Config
		section, key string
		want         []string
	}{
		{"values accumulate file by file, the last one wins", Merge(first, second, third), "a", "k", []string{"1", "2", "4", "5"}},
		{"the order of files decides", Merge(third, second, first), "a", "k", []string{"5", "4", "1", "2"}},
		{"what only one file sets stays", Merge(first, second), "b", "l", []string{"3"}},
		{"merging in two steps is the same", Merge(Merge(first, second), third), "a", "k", []string{"1", "2", "4", "5"}},
		{"merging a merged tail is the same", Merge(first, Merge(second, third)), "a", "k", []string{"1", "2", "4", "5"}},
		{"a file may come twice", Merge(second, second), "a", "k", []string{"4", "4"}},
		{"no files set nothing", Merge(), "a", "k", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.cfg.Get(test.section, test.key); !reflect.DeepEqual(got, test.want) {
				t.Errorf("Get = %q, want %q", got, test.want)
			}
			joined := mustParse(t, test.cfg.Text())
			if got := joined.Get(test.section, test.key); !reflect.DeepEqual(got, test.want) {
				t.Errorf("the joined text gives %q, want %q", got, test.want)
			}
		})
	}
}

func TestMergeTellsTheFileAndLineOfEachValue(t *testing.T) {
	generated := mustParse(t, "[a]\nk = 1\n")
	custom := mustParse(t, "\n[a]\nk = 2\n")
	got := Merge(Merge(generated), custom, generated).Sections()[0].Options[0].Values
	want := []Value{{Text: "1", File: 0, Line: 2}, {Text: "2", File: 1, Line: 3}, {Text: "1", File: 2, Line: 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfigCannotBeChangedFromOutside(t *testing.T) {
	cfg := mustParse(t, "[a]\nk = 1\n")
	sections := cfg.Sections()
	sections[0].Options[0].Values[0].Text = "changed"
	sections[0].Options[0].Key = "changed"
	sections[0].Name = "changed"
	Merge(cfg, mustParse(t, "[a]\nk = 2\n"))
	if got := cfg.Get("a", "k"); !reflect.DeepEqual(got, []string{"1"}) {
		t.Errorf("Get = %q, want the value as parsed", got)
	}
}
