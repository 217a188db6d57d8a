package validate

import (
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

func TestANodeSaysHowItIsDrained(t *testing.T) {
	for title, c := range map[string]struct {
		annotations map[string]string
		mode        string
		parallel    int
		wrong       string
	}{
		"it is not drained":        {nil, "", 2, ""},
		"live":                     {map[string]string{common.DrainAnnotation: "live"}, "live", 2, ""},
		"cold, three at a time":    {map[string]string{common.DrainAnnotation: "cold", common.DrainParallelAnnotation: "3"}, "cold", 3, ""},
		"stop":                     {map[string]string{common.DrainAnnotation: "stop"}, "stop", 2, ""},
		"another word":             {map[string]string{common.DrainAnnotation: "yes"}, "yes", 2, `metadata.annotations[edpm.openstack.org/drain]: Unsupported value: "yes": supported values: "live", "cold", "stop"`},
		"no word":                  {map[string]string{common.DrainAnnotation: ""}, "", 2, `Unsupported value: ""`},
		"none at a time":           {map[string]string{common.DrainParallelAnnotation: "0"}, "", 2, "must be a number from 1 to 50"},
		"more at a time than work": {map[string]string{common.DrainParallelAnnotation: "51"}, "", 2, "must be a number from 1 to 50"},
		"a word instead of number": {map[string]string{common.DrainParallelAnnotation: "all"}, "", 2, `Invalid value: "all"`},
	} {
		mode, parallel, errs := Drain(c.annotations)
		if mode != c.mode || parallel != c.parallel {
			t.Errorf("%s: it is drained %q, %d at a time; want %q, %d", title, mode, parallel, c.mode, c.parallel)
		}
		switch {
		case c.wrong == "" && len(errs) > 0:
			t.Errorf("%s: it is refused: %v", title, errs)
		case c.wrong != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.wrong)):
			t.Errorf("%s: it says %v; want %q", title, errs, c.wrong)
		}
	}
}
