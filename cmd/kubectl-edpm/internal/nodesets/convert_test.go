package nodesets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValuesAreWrittenAsTheRolesTakeThem(t *testing.T) {
	type list = []any
	type mapping = map[string]any
	for name, tt := range map[string]struct {
		by          string
		value, want any
		fails       bool
	}{
		"time servers":                {"hostnames", list{mapping{"hostname": "a"}, mapping{"hostname": "b", "iburst": true}}, list{"a", "b"}, false},
		"a pool of time servers":      {"hostnames", list{mapping{"hostname": "a", "pool": true}}, nil, true},
		"names of time servers":       {"hostnames", list{"a"}, nil, true},
		"a template of servers":       {"hostnames", "{{ servers }}", nil, true},
		"bridges of networks":         {"pairs", list{"datacentre:br-ex", "a:b"}, mapping{"datacentre": "br-ex", "a": "b"}, false},
		"a template of a bridge":      {"pairs", list{"datacentre:{{ bridge }}"}, nil, true},
		"bridges without networks":    {"pairs", list{"br-ex"}, nil, true},
		"bridges as text":             {"pairs", "datacentre:br-ex", nil, true},
		"kernel settings":             {"sysctl", mapping{"vm.swappiness": mapping{"value": 10}}, mapping{"vm.swappiness": 10}, false},
		"kernel settings as values":   {"sysctl", mapping{"vm.swappiness": 10}, nil, true},
		"kernel settings as text":     {"sysctl", "x", nil, true},
		"a boolean":                   {"boolean", true, true, false},
		"a boolean as text":           {"boolean", "no", "no", false},
		"a template of a boolean":     {"boolean", "{{ x }}", nil, true},
		"pages that are shared":       {"ksm", true, "enabled", false},
		"pages that are not shared":   {"ksm", "false", "disabled", false},
		"a gateway":                   {"gateway", "yes", "enable-chassis-as-gw", false},
		"no gateway":                  {"gateway", false, "", false},
		"a number for a gateway":      {"gateway", 1, nil, true},
		"a list for shared pages":     {"ksm", list{}, nil, true},
		"an entry that is no mapping": {"hostnames", list{mapping{"hostname": 5}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := conversions[tt.by](tt.value)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
				t.Errorf("%s of %v: error %v (-want +got):\n%s", tt.by, tt.value, err, diff)
			}
		})
	}
}
