package dataplane

import (
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

func TestPendingMachine(t *testing.T) {
	metalRole := &dataplanev1.OpenStackDataPlaneRole{Spec: dataplanev1.OpenStackDataPlaneRoleSpec{BaremetalSetTemplate: &dataplanev1.BaremetalSetTemplate{}}}
	plain := &dataplanev1.OpenStackDataPlaneRole{}
	ran := common.Ledger{Runs: map[string]common.RunRecord{"configure-network": {}}}
	lost := common.Ledger{}
	lost.SetUnknown()
	machine := dataplanev1.ClaimedHost{Name: "m0", Claimed: true, Provisioned: true, Address: "10.0.0.1", Replacement: "1"}
	known := common.Ledger{HostKey: "ssh-ed25519 AAAA"}
	paused := &dataplanev1.ProvisioningStatus{Reason: "BareMetalHostPaused", Severity: "Error", Message: "is paused"}
	for name, tc := range map[string]struct {
		role   *dataplanev1.OpenStackDataPlaneRole
		status dataplanev1.OpenStackDataPlaneNodeStatus
		token  string
		marked bool
		want   condition.Reason
	}{
		"a role without bare metal":                     {role: plain},
		"a new node":                                    {role: metalRole, want: "BareMetalHostProvisioning"},
		"what the claim reports":                        {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{Provisioning: paused}, want: "BareMetalHostPaused"},
		"a report of a role that no longer asks":        {role: plain, status: dataplanev1.OpenStackDataPlaneNodeStatus{Provisioning: paused}},
		"a machine":                                     {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &machine, Ledger: known}},
		"a machine whose role no longer asks":           {role: plain, status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &machine, Ledger: known, Provisioning: paused}, want: "BareMetalHostPaused"},
		"a machine whose key is unknown":                {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &machine}, want: "BareMetalHostProvisioning"},
		"a token that was followed":                     {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &machine, Ledger: known}, token: "1"},
		"a token that the claim has not seen":           {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: &machine, Ledger: known}, token: "2", want: "BareMetalHostProvisioning"},
		"a node that ran before":                        {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: ran}},
		"one that ran before, with a token":             {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: ran}, token: "1", want: "BareMetalHostProvisioning"},
		"a restored one, before the claim has looked":   {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: lost}, want: "BareMetalHostProvisioning"},
		"a restored one without a machine":              {role: metalRole, status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: lost, Provisioning: &dataplanev1.ProvisioningStatus{}}},
		"a restored one with a machine and no template": {role: plain, marked: true, status: dataplanev1.OpenStackDataPlaneNodeStatus{Ledger: lost}, want: "BareMetalHostProvisioning"},
	} {
		t.Run(name, func(t *testing.T) {
			node := &dataplanev1.OpenStackDataPlaneNode{Status: tc.status}
			node.Annotations = map[string]string{common.ReplaceHostAnnotation: tc.token}
			if tc.marked {
				node.Finalizers = []string{dataplanev1.MachineFinalizer}
			}
			var got condition.Reason
			if halt := PendingMachine(node, tc.role); halt != nil {
				got = halt.Reason
			}
			if got != tc.want {
				t.Errorf("the node waits because of %q, want %q", got, tc.want)
			}
		})
	}
}
