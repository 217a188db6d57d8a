package topology

import (
	"context"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// dump attaches to a failed story what a person would look at first.
func dump(ctx context.Context) {
	var out strings.Builder
	for _, list := range []client.ObjectList{&openstackv1.OpenStackControlPlaneList{}, &glancev1.GlanceList{}, &glancev1.GlanceAPIList{}, &topologyv1.TopologyList{}, &ocsv1.StorageClusterList{}} {
		_ = k8s.List(ctx, list)
		items, _ := apimeta.ExtractList(list)
		for _, item := range items[:min(len(items), 20)] {
			obj := item.(phase.Object)
			fmt.Fprintf(&out, "%T %s: %s\n", obj, obj.GetName(), expect.Describe(obj))
		}
	}
	dumpPods(ctx, &out)
	if manager != nil {
		text, _ := os.ReadFile(manager.LogFile())
		lines := strings.Split(string(text), "\n")
		fmt.Fprintf(&out, "--- %s, the last lines\n%s\n", manager.LogFile(), strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	AddReportEntry("state", out.String(), ReportEntryVisibilityFailureOrVerbose)
}

func dumpPods(ctx context.Context, out *strings.Builder) {
	nodes := &corev1.NodeList{}
	_ = k8s.List(ctx, nodes)
	for _, n := range nodes.Items {
		fmt.Fprintf(out, "node %s labels %v taints %v\n", n.Name, n.Labels, n.Spec.Taints)
	}
	list := &corev1.PodList{}
	_ = k8s.List(ctx, list)
	items := list.Items
	for i := range items[:min(len(items), 30)] {
		p := &items[i]
		fmt.Fprintf(out, "pod %s on %q: %s, revision %s", p.Name, p.Spec.NodeName, state(p), p.Labels["controller-revision-hash"])
		for _, c := range p.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				fmt.Fprintf(out, "; %s %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		fmt.Fprintln(out)
	}
}
