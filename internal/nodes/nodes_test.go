package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
)

// withNodes returns a client that has n nodes of role r, and some others.
func withNodes(t *testing.T, n int) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	node := func(ns, name, role string) client.Object {
		return &dataplanev1.OpenStackDataPlaneNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: role},
		}
	}
	objects := []client.Object{node("ns", "other", "other"), node("elsewhere", "n", "r")}
	for i := range n {
		objects = append(objects, node("ns", fmt.Sprint("n", i), "r"))
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&dataplanev1.OpenStackDataPlaneNode{}, RoleIndex, func(o client.Object) []string {
			return []string{o.(*dataplanev1.OpenStackDataPlaneNode).Spec.Role}
		}).Build()
}

func TestStrategy(t *testing.T) {
	type section = dataplanev1.DeployStrategySection
	percent := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	for name, c := range map[string]struct {
		section section
		nodes   int
		want    edpm.Strategy
	}{
		"deploy is true by default": {section{}, 0, edpm.Strategy{Deploy: true}},
		"everything is taken over": {
			section{Deploy: ptr.To(false), AnsibleTags: "t", AnsibleSkipTags: "s", AnsibleLimit: "l", BatchSize: ptr.To[int32](3),
				MaxUnavailable: ptr.To(intstr.FromInt32(2)), MaxFailures: ptr.To[int32](0)}, 0,
			edpm.Strategy{Tags: "t", SkipTags: "s", Limit: "l", BatchSize: 3, MaxUnavailable: 2, MaxFailures: ptr.To[int32](0)},
		},
		"a percentage of the nodes of the role":      {section{MaxUnavailable: percent("50%")}, 10, edpm.Strategy{Deploy: true, MaxUnavailable: 5}},
		"a percentage is rounded up":                 {section{MaxUnavailable: percent("25%")}, 5, edpm.Strategy{Deploy: true, MaxUnavailable: 2}},
		"a percentage is at least one node":          {section{MaxUnavailable: percent("1%")}, 3, edpm.Strategy{Deploy: true, MaxUnavailable: 1}},
		"a percentage of no nodes is one node":       {section{MaxUnavailable: percent("50%")}, 0, edpm.Strategy{Deploy: true, MaxUnavailable: 1}},
		"all of them":                                {section{MaxUnavailable: percent("100%")}, 7, edpm.Strategy{Deploy: true, MaxUnavailable: 7}},
		"zero would never start anything and is one": {section{MaxUnavailable: ptr.To(intstr.FromInt32(0))}, 7, edpm.Strategy{Deploy: true, MaxUnavailable: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Strategy(context.Background(), withNodes(t, c.nodes), "ns", "r", c.section)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the strategy differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrategySaysWhatIsWrong(t *testing.T) {
	for _, text := range []string{"half", "50", "%", ""} {
		_, err := Strategy(context.Background(), withNodes(t, 2), "ns", "r", dataplanev1.DeployStrategySection{MaxUnavailable: ptr.To(intstr.FromString(text))})
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
