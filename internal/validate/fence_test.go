package validate

import (
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

func TestFence(t *testing.T) {
	fence, drain := common.FenceAnnotation, common.DrainAnnotation
	for name, c := range map[string]struct {
		annotations map[string]string
		by, says    string
	}{
		"no statement":          {map[string]string{drain: "live"}, "", ""},
		"a statement":           {map[string]string{fence: " anna: PDU port 7 is off "}, "anna: PDU port 7 is off", ""},
		"an empty one":          {map[string]string{fence: "  "}, "", "metadata.annotations[edpm.openstack.org/fence]: Required value: name who says that the host is off"},
		"one of several lines":  {map[string]string{fence: "anna\nbert"}, "anna\nbert", "must be at most 200 bytes of one line"},
		"a long one":            {map[string]string{fence: strings.Repeat("a", 201)}, strings.Repeat("a", 201), "must be at most 200 bytes of one line"},
		"one of a drained host": {map[string]string{fence: "anna", drain: "live"}, "anna", "metadata.annotations[edpm.openstack.org/drain]: Forbidden: a host that is off cannot move its guests"},
	} {
		t.Run(name, func(t *testing.T) {
			by, errs := Fence(c.annotations)
			if by != c.by {
				t.Errorf("it says %q; want %q", by, c.by)
			}
			if got := errs.ToAggregate(); (got == nil) != (c.says == "") || got != nil && !strings.Contains(got.Error(), c.says) {
				t.Errorf("the errors are %v; want %q", got, c.says)
			}
		})
	}
}
