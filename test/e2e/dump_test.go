package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// dump attaches to a failed story what a person would look at first.
func dump(ctx context.Context) {
	var out strings.Builder
	for _, ns := range testNamespaces {
		events := eventsSince(ctx, ns, CurrentSpecReport().StartTime)
		if len(events) == 0 {
			continue // another story's
		}
		dumpConditions(ctx, &out, ns)
		fmt.Fprintf(&out, "--- events of %s, the last ones\n%s\n", ns, tail(strings.Join(events, "\n"), 30))
		dumpLastLogs(&out, ns, 3)
	}
	logs, _ := manager.Logs(ctx)
	fmt.Fprintf(&out, "--- manager\n%s\n", tail(logs, 40))
	for _, h := range allHosts() {
		text, _ := h.Console(ctx, "tail -n 20 /var/log/edpm/runs.log 2>/dev/null; systemctl --no-legend --plain list-units 'edpm_*'; true")
		fmt.Fprintf(&out, "--- %s\n%s\n", h.Name, text)
	}
	AddReportEntry("state", out.String(), ReportEntryVisibilityFailureOrVerbose)
}

// eventsSince returns the events of a namespace since then, a line each, in order.
func eventsSince(ctx context.Context, ns string, start time.Time) []string {
	list := &corev1.EventList{}
	_ = k8s.List(ctx, list, client.InNamespace(ns)) // what cannot be read is left out
	var lines []string
	for i := range list.Items {
		e := &list.Items[i]
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if !at.Before(start.Truncate(time.Second)) {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", at.UTC().Format(time.RFC3339), e.Type, e.Reason, e.InvolvedObject.Name, e.Message))
		}
	}
	sort.Strings(lines)
	return lines
}

// dumpConditions writes the conditions of what is not Ready.
func dumpConditions(ctx context.Context, out *strings.Builder, ns string) {
	for _, list := range []client.ObjectList{
		&novav1.NovaList{}, &novav1.NovaCellList{}, &dataplanev1.OpenStackDataPlaneNodeList{},
		&novav1.NovaExternalComputeList{}, &ansibleeev1.OpenStackAnsibleEEList{},
		&glancev1.GlanceList{}, &glancev1.GlanceAPIList{}, &topologyv1.TopologyList{},
	} {
		if err := k8s.List(ctx, list, client.InNamespace(ns)); err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		items, _ := apimeta.ExtractList(list)
		for _, item := range items {
			obj := item.(phase.Object)
			if !obj.GetConditions().IsTrue(condition.ReadyCondition) {
				fmt.Fprintf(out, "%s %T %s: %s\n", ns, obj, obj.GetName(), describe(obj))
			}
		}
	}
}

// dumpLastLogs writes the ends of the logs of the newest pods of a namespace.
func dumpLastLogs(out *strings.Builder, ns string, most int) {
	logs, _ := filepath.Glob(filepath.Join(cluster.PodLogs(), ns+"_*", "*", "*.log"))
	sort.Slice(logs, func(i, j int) bool { return modified(logs[i]) > modified(logs[j]) })
	for _, path := range logs[:min(most, len(logs))] {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(out, "--- %s\n%s\n", path, tail(string(text), 40))
	}
}

func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
