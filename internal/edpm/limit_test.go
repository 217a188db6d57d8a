package edpm

import (
	"strings"
	"testing"
)

func TestMatchesLimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit string
		yes   []string
		no    []string
	}{
		"an empty limit selects every host":           {"", []string{"a", "edpm-compute-0"}, nil},
		"all selects every host":                      {"all", []string{"a", "b"}, nil},
		"a star selects every host":                   {"*", []string{"a", "b"}, nil},
		"a name selects that host only":               {"compute-0", []string{"compute-0"}, []string{"compute-01", "xcompute-0"}},
		"names are separated by commas":               {"a,b", []string{"a", "b"}, []string{"c"}},
		"names are separated by colons":               {"a:b", []string{"a", "b"}, []string{"c"}},
		"spaces around names do not matter":           {" a , b ", []string{"a", "b"}, []string{"c"}},
		"empty parts do not matter":                   {",a,,b:", []string{"a", "b"}, []string{"c"}},
		"wildcards are those of a shell":              {"compute-?", []string{"compute-0"}, []string{"compute-10", "compute-"}},
		"a star crosses dots":                         {"*.example.org", []string{"a.b.example.org"}, []string{"example.org", "a.example.com"}},
		"a class selects one character":               {"compute-[0-2]", []string{"compute-0", "compute-2"}, []string{"compute-3"}},
		"a class can be negated as in a shell":        {"compute-[!0]", []string{"compute-1"}, []string{"compute-0"}},
		"an exclamation mark excludes":                {"all:!b", []string{"a"}, []string{"b"}},
		"an exclusion alone means all but":            {"!b*", []string{"a"}, []string{"b", "b1"}},
		"exclusions win wherever they stand":          {"!a,a,b", []string{"b"}, []string{"a"}},
		"an ampersand intersects":                     {"a*:&*z", []string{"az", "abz"}, []string{"a", "z"}},
		"an intersection alone starts from all":       {"&*z", []string{"z"}, []string{"a"}},
		"intersections add up":                        {"&a*:&*z", []string{"az"}, []string{"ab", "bz"}},
		"a tilde starts a regular expression":         {`~compute-\d+$`, []string{"compute-10"}, []string{"compute-x", "compute-1a"}},
		"a regular expression starts at the start":    {"~b", []string{"b", "bc"}, []string{"ab"}},
		"alternatives of a regular expression too":    {"~b|c", []string{"b", "cd"}, []string{"ab", "ac"}},
		"a regular expression can be excluded":        {"all,!~b.$", []string{"b", "a"}, []string{"bb"}},
		"upper and lower case differ, as host names":  {"Compute-0", nil, []string{"compute-0"}},
		"a limit that selects nothing selects no one": {"nosuch", nil, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for host, want := range expected(c.yes, c.no) {
				got, err := MatchesLimit(c.limit, host)
				if err != nil || got != want {
					t.Errorf("MatchesLimit(%q, %q) = %v, %v; want %v", c.limit, host, got, err, want)
				}
			}
		})
	}
}

func expected(yes, no []string) map[string]bool {
	out := map[string]bool{}
	for _, h := range yes {
		out[h] = true
	}
	for _, h := range no {
		out[h] = false
	}
	return out
}

func TestMatchesLimitSaysWhatItCannotRead(t *testing.T) {
	for limit, quoted := range map[string]string{
		"compute-[0":    `"compute-[0"`,
		"a,web[0:2]":    `"web[0"`,
		"~compute-(":    `"compute-("`,
		"all:!~[":       `"["`,
		"ok,compute-[]": `"compute-[]"`,
	} {
		_, err := MatchesLimit(limit, "compute-0")
		if err == nil || !strings.Contains(err.Error(), quoted) || !strings.Contains(err.Error(), "ansibleLimit") {
			t.Errorf("MatchesLimit(%q): error is %v; want one that names ansibleLimit and quotes %s", limit, err, quoted)
		}
	}
}

func FuzzMatchesLimit(f *testing.F) {
	for _, seed := range []string{"", "all", "a,b:!c", "&x*", "~^a|b", "[!a]", "!", "~", "a[", ":,:"} {
		f.Add(seed, "compute-0")
	}
	f.Fuzz(func(t *testing.T, limit, host string) {
		got, err := MatchesLimit(limit, host)
		if err != nil {
			if got {
				t.Errorf("MatchesLimit(%q, %q) selects the host although it cannot be read: %v", limit, host, err)
			}
			return
		}
		if again, _ := MatchesLimit(limit, host); again != got {
			t.Errorf("MatchesLimit(%q, %q) = %v and then %v", limit, host, got, again)
		}
		// Excluding everything must win over whatever is in front.
		if got, err := MatchesLimit(limit+",!all", host); err != nil || got {
			t.Errorf("MatchesLimit(%q, %q) = %v, %v; nothing is left after !all", limit+",!all", host, got, err)
		}
		// Joining all can only add hosts that nothing excludes.
		if strings.ContainsAny(limit, "!&") {
			return
		}
		if got, err := MatchesLimit(limit+",all", host); err != nil || !got {
			t.Errorf("MatchesLimit(%q, %q) = %v, %v; all selects every host", limit+",all", host, got, err)
		}
	})
}
