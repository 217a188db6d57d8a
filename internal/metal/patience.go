package metal

import (
	"fmt"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// usual is how long machines usually take at most for what ends without anybody's
// help: servers need some ten minutes to boot, and cleaning a large disk half an hour.
var usual = map[condition.Reason]time.Duration{
	dataplanev1.MetalRegisteringReason:  15 * time.Minute,
	dataplanev1.MetalInspectingReason:   30 * time.Minute,
	dataplanev1.MetalPreparingReason:    30 * time.Minute,
	dataplanev1.MetalProvisioningReason: time.Hour,
	dataplanev1.MetalPoweredOffReason:   15 * time.Minute,
	dataplanev1.MetalReleasingReason:    time.Hour,
}

// At returns the verdict as it is at a time, when it has been the same since another
// one, and after how long it has to be looked at again; zero means never. Nothing is
// given up: what takes longer than usual says since when, as a warning.
func (v Verdict) At(now, since time.Time) (Verdict, time.Duration) {
	limit, ends := usual[v.Reason]
	switch {
	case !ends || v.Severity == condition.SeverityError:
		return v, 0
	case now.Sub(since) < limit:
		return v, limit - now.Sub(since)
	}
	v.Severity = condition.SeverityWarning
	v.Message += fmt.Sprintf(". It has been so since %s, which is longer than usual (%s): see runbook EDPMProvisioningStuck", since.UTC().Format(time.RFC3339), limit)
	return v, 0
}
