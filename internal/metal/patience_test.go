package metal

import (
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

func TestWhatTakesLongerThanUsualSaysSinceWhen(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		reason   condition.Reason
		severity condition.Severity
		waited   time.Duration
		late     bool
		again    time.Duration
	}{
		"a moment ago":                 {dataplanev1.MetalProvisioningReason, condition.SeverityInfo, time.Minute, false, 59 * time.Minute},
		"an hour":                      {dataplanev1.MetalProvisioningReason, condition.SeverityInfo, time.Hour, true, 0},
		"what only a person ends":      {dataplanev1.MetalPausedReason, condition.SeverityError, 24 * time.Hour, false, 0},
		"unmanaged, which is no wait":  {dataplanev1.MetalRegisteringReason, condition.SeverityError, 24 * time.Hour, false, 0},
		"an error, which is said so":   {dataplanev1.MetalErrorReason, condition.SeverityWarning, 24 * time.Hour, false, 0},
		"off, and to be powered on":    {dataplanev1.MetalPoweredOffReason, condition.SeverityWarning, time.Hour, true, 0},
		"a clock that was set back":    {dataplanev1.MetalInspectingReason, condition.SeverityInfo, -time.Minute, false, 31 * time.Minute},
		"deprovisioning half an hour":  {dataplanev1.MetalReleasingReason, condition.SeverityInfo, 30 * time.Minute, false, 30 * time.Minute},
		"deprovisioning for two hours": {dataplanev1.MetalReleasingReason, condition.SeverityInfo, 2 * time.Hour, true, 0},
	} {
		v, again := Verdict{c.reason, c.severity, "x"}.At(noon.Add(c.waited), noon)
		late := strings.Contains(v.Message, "since 2026-03-01T12:00:00Z")
		if late != c.late || again != c.again || late && v.Severity != condition.SeverityWarning || !late && v.Severity != c.severity {
			t.Errorf("%s: it says %+v, and is looked at again after %s; want late %v, and %s", name, v, again, c.late, c.again)
		}
	}
}
