package olm

import (
	"context"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// olmVersion is the version of OLM's kinds. They are read as they are: their types
// are not worth a dependency of this module.
var olmVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// object returns an empty object of OLM.
func object(kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(olmVersion.WithKind(kind))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// status returns a function for Eventually that reads a field of an object's
// status.
func status(ctx context.Context, kind, namespace, name, field string) func() (string, error) {
	return func() (string, error) {
		obj := object(kind, namespace, name)
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return "", err
		}
		value, _, err := unstructured.NestedString(obj.Object, "status", field)
		return value, err
	}
}

// csvPhase is status for a ClusterServiceVersion.
func csvPhase(ctx context.Context, name string) func() (string, error) {
	return status(ctx, "ClusterServiceVersion", systemNS, name, "phase")
}

// subscription is all that a person applies; the catalog is where opm serves it.
func subscription() string {
	return fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: edpm-operators, namespace: %[1]s}
spec: {sourceType: grpc, address: "%[2]s", displayName: EDPM Operators}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all-namespaces, namespace: %[3]s}
spec: {}
---
%[4]s`, olmNS, catalogAddress, systemNS, subscriptionTo("edpm-operators"))
}

// subscriptionTo a package of the catalog.
func subscriptionTo(name string) string {
	return fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: %[1]s, namespace: %[2]s}
spec: {source: edpm-operators, sourceNamespace: %[3]s, name: %[1]s, channel: candidate}
`, name, systemNS, olmNS)
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: container}}
}

// managers returns the pods of the manager that are ready.
func managers(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := k8s.List(ctx, pods, client.InNamespace(systemNS), client.MatchingLabels{"app.kubernetes.io/component": "manager"})
	var ready []corev1.Pod
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero() {
				ready = append(ready, pod)
			}
		}
	}
	return ready, err
}

// spread returns a Topology that spreads over the values of a label.
func spread(name, key string) *topologyv1.Topology {
	return &topologyv1.Topology{
		ObjectMeta: metav1.ObjectMeta{Namespace: userNS, Name: name},
		Spec: topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"service": "glance"}},
		}}},
	}
}

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "catalogsources,subscriptions,installplans.operators.coreos.com,clusterserviceversions", "--all-namespaces"},
		{"get", "clusterserviceversions", "-n", systemNS, "-o", `jsonpath={range .items[*]}{.metadata.name}{": "}{.status.reason}{": "}{.status.message}{"\n"}{range .status.requirementStatus[*]}{.kind}{" "}{.name}{" "}{.status}{" "}{.message}{"\n"}{end}{end}`},
		{"get", "pods,events", "-n", systemNS},
		{"logs", "-n", systemNS, "deployment/" + container, "--tail=40"},
	} {
		r.Kubectl(ctx, args...)
	}
	for _, name := range []string{"opm", "catalog", "olm"} {
		r.Note(name, tail(cluster.Log(name), 30), nil)
	}
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
