package registration

import (
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

func TestAHostIsExposedAsLongAsNovaMayPutGuestsOnIt(t *testing.T) {
	enabled, disabled := computeservice.Service{Up: true}, computeservice.Service{Up: true, Disabled: true}
	for title, c := range map[string]struct {
		mode  string
		fresh computeservice.Service
		want  condition.Reason
	}{
		"a drain":                               {validate.DrainLive, disabled, ""},
		"a drain, and a person has enabled it":  {validate.DrainLive, enabled, novav1.DrainingReason},
		"guests are shut off there":             {validate.DrainStop, enabled, novav1.DrainingReason},
		"the end of a drain is completed":       {"", enabled, ""},
		"an evacuation":                         {drain.Evacuation, computeservice.Service{Disabled: true, ForcedDown: true}, ""},
		"an evacuation, and it is taken for up": {drain.Evacuation, disabled, novav1.EvacuatingReason},
		"an evacuation, and it is enabled":      {drain.Evacuation, computeservice.Service{ForcedDown: true}, novav1.EvacuatingReason},
	} {
		var got condition.Reason
		if halt := exposed(c.mode, "h", c.fresh); halt != nil {
			got = halt.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
}
