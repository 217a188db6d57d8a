package dataplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

func TestRollout(t *testing.T) {
	type section = dataplanev1.DeployStrategySection
	percent := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	for name, c := range map[string]struct {
		section section
		want    edpm.Strategy
	}{
		"deploy is true by default": {section{}, edpm.Strategy{Deploy: true}},
		"everything is taken over": {
			section{Deploy: ptr.To(false), AnsibleTags: "t", AnsibleSkipTags: "s", AnsibleLimit: "l", BatchSize: ptr.To[int32](3),
				MaxUnavailable: ptr.To(intstr.FromInt32(2)), MaxFailures: ptr.To[int32](0)},
			edpm.Strategy{Tags: "t", SkipTags: "s", Limit: "l", BatchSize: 3, MaxUnavailable: 2, MaxFailures: ptr.To[int32](0)},
		},
		"a percentage stays one: the plan knows of how many nodes": {section{MaxUnavailable: percent("25%")}, edpm.Strategy{Deploy: true, MaxUnavailablePercent: 25}},
		"zero percent would never start anything and is one":       {section{MaxUnavailable: percent("0%")}, edpm.Strategy{Deploy: true, MaxUnavailable: 1}},
		"zero would never start anything and is one":               {section{MaxUnavailable: ptr.To(intstr.FromInt32(0))}, edpm.Strategy{Deploy: true, MaxUnavailable: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Rollout(c.section)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the strategy differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolloutSaysWhatIsWrong(t *testing.T) {
	for _, text := range []string{"half", "50", "%", ""} {
		_, err := Rollout(dataplanev1.DeployStrategySection{MaxUnavailable: ptr.To(intstr.FromString(text))})
		if err == nil || !strings.Contains(err.Error(), "maxUnavailable") || !strings.Contains(err.Error(), "percentage") {
			t.Errorf("the error of %q is %v; want one that names the field and the remedy", text, err)
		}
	}
}

func TestHostVars(t *testing.T) {
	for name, c := range map[string]struct {
		eff  inherit.Effective
		want map[string]any
	}{
		"the address and the name": {
			inherit.Effective{HostName: "host", AnsibleHost: "10.0.0.1"}, map[string]any{"ansible_host": "10.0.0.1", "canonical_hostname": "host"},
		},
		"how the host is logged in to": {
			inherit.Effective{AnsibleUser: "root", AnsiblePort: 2222},
			map[string]any{"ansible_host": "", "canonical_hostname": "", "ansible_user": "root", "ansible_port": int32(2222)},
		},
		"networks, and the addresses on them": {
			inherit.Effective{ManagementNetwork: "ctlplane", Networks: []dataplanev1.NetworkSection{{Network: "InternalApi", FixedIP: "172.17.0.1"}, {Network: "storage"}}},
			map[string]any{
				"ansible_host": "", "canonical_hostname": "", "management_network": "ctlplane", "internalapi_ip": "172.17.0.1",
				"networks": []map[string]any{{"network": "InternalApi", "fixedIP": "172.17.0.1"}, {"network": "storage", "fixedIP": ""}},
			},
		},
		"what people write wins": {
			inherit.Effective{AnsibleHost: "a", AnsibleUser: "root", Vars: map[string]any{"ansible_host": "b", "ansible_user": "stack", "x": 1}},
			map[string]any{"ansible_host": "b", "canonical_hostname": "", "ansible_user": "stack", "x": 1},
		},
	} {
		if diff := cmp.Diff(c.want, HostVars(c.eff)); diff != "" {
			t.Errorf("%s: the variables differ (-want +got):\n%s", name, diff)
		}
	}
}
