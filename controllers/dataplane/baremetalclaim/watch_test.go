package baremetalclaim

import (
	"slices"
	"testing"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// A node that would claim a machine is found before its condition says that none is
// free: a host that is freed while the status is written must wake it.
func TestNodesThatWaitAreKnownByWhatTheyHave(t *testing.T) {
	ran := common.Ledger{Runs: map[string]common.RunRecord{"configure-network": {}}}
	for name, tc := range map[string]struct {
		status      dataplanev1.OpenStackDataPlaneNodeStatus
		annotations map[string]string
		want        []string
	}{
		"new":                     {want: []string{"waiting"}},
		"chosen":                  {status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &dataplanev1.ClaimedHost{Name: "m0"}}, want: []string{"host/m0", "waiting"}},
		"claimed":                 {status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &dataplanev1.ClaimedHost{Name: "m0", Claimed: true}}, want: []string{"host/m0"}},
		"replaced":                {status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &dataplanev1.ClaimedHost{Former: "m0", Replacement: "1"}}, want: []string{"waiting"}},
		"restored":                {status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &dataplanev1.ClaimedHost{Claimed: true}}, want: []string{"waiting"}},
		"configured without one":  {status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: ran}},
		"configured and asked to": {status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: ran}, annotations: map[string]string{common.ReplaceHostAnnotation: "1"}, want: []string{"waiting"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &dataplanev1.OpenStackDataPlaneNode{Status: tc.status}
			node.Annotations = tc.annotations
			if got := indexMetal(node); !slices.Equal(got, tc.want) {
				t.Errorf("the index has %q, want %q", got, tc.want)
			}
		})
	}
}
