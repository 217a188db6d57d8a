package common

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTasksThatDiffer(t *testing.T) {
	named := Difference{Task: "Write hosts", Names: []string{"/etc/hosts", "/etc/b"}}
	for name, c := range map[string]struct {
		differences []Difference
		most        int
		want        []string
	}{
		"none":                     {nil, 3, nil},
		"one":                      {[]Difference{named, {Task: "Run nova"}}, 3, []string{"Write hosts (/etc/hosts, /etc/b)", "Run nova"}},
		"more than are named":      {[]Difference{named, {Task: "b"}, {Task: "c"}, {Omitted: 2}}, 1, []string{"Write hosts (/etc/hosts, /etc/b)", "4 more tasks"}},
		"as many as are named":     {[]Difference{{Omitted: 2}, {Task: "b"}}, 1, []string{"b", "2 more tasks"}},
		"none of which has a name": {[]Difference{{Omitted: 7}, {}}, 3, []string{"8 more tasks"}},
	} {
		if diff := cmp.Diff(c.want, Drift{Differences: c.differences}.Tasks(c.most)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
