package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/edpm-operators/edpm-operators/test/standalone"
)

// Namespaces of the floors: of the same writes, and of those that are necessary.
const (
	floorNamespace     = "floor"
	necessaryNamespace = "floor-necessary"
)

// written are the resources that the manager writes, as far as other clients
// write them with other verbs only.
var written = []schema.GroupVersionResource{
	{Group: "dataplane.openstack.org", Version: "v1beta1", Resource: "openstackdataplaneroles"},
	{Group: "dataplane.openstack.org", Version: "v1beta1", Resource: "openstackdataplanenodes"},
	{Group: "nova.openstack.org", Version: "v1beta1", Resource: "novaexternalcomputes"},
	{Group: "ansibleee.openstack.org", Version: "v1beta1", Resource: "openstackansibleees"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
}

var eventResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// op is one request of the floor.
type op struct {
	verb, path string
	patch      types.PatchType
	body       []byte
}

// chain are requests that come one after the other.
type chain struct {
	turn float64 // chains are started in this order
	ops  []op
}

// floor is what a bare client takes.
type floor struct {
	time   time.Duration
	cpu    time.Duration // of the API server and etcd
	writes int
}

// measureFloor repeats, in a namespace of its own and with no manager, what was
// written: the same numbers of requests of each kind with bodies made from the
// objects that they led to.
func (s *stand) measureFloor(ctx context.Context, r *result) error {
	chains, err := floorChains(ctx, s.config, floorNamespace, r.requests)
	if err != nil {
		return err
	}
	events := r.writes + r.roles + r.nodes // what else was written; roles and nodes are created by others
	for _, c := range chains {
		events -= len(c.ops)
	}
	more, err := eventChains(ctx, s.config, events)
	if err != nil {
		return err
	}
	r.floor, err = s.send(ctx, append(chains, more...))
	return err
}

// measureNecessary sends what no implementation could do without: the creation
// of each object, and two writes of the status of each node and compute, that
// its run has started and how it ended.
func (s *stand) measureNecessary(ctx context.Context, r *result) error {
	chains, err := floorChains(ctx, s.config, necessaryNamespace, necessary(r.nodes))
	if err == nil {
		r.necessary, err = s.send(ctx, chains)
	}
	return err
}

// necessary are the requests next to creations.
func necessary(nodes int) standalone.Requests {
	counts := standalone.Requests{}
	for _, gvr := range written {
		if gvr.Resource == "openstackdataplanenodes" || gvr.Resource == "novaexternalcomputes" {
			counts[standalone.Request{Group: gvr.Group, Resource: gvr.Resource, Subresource: "status", Verb: "PATCH"}] = 2 * nodes
		}
	}
	return counts
}

// send sends the chains, the first ones first.
func (s *stand) send(ctx context.Context, chains []chain) (floor, error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return floor{}, err
	}
	slices.SortStableFunc(chains, func(a, b chain) int { return cmp.Compare(a.turn, b.turn) })
	f := floor{}
	for _, c := range chains {
		f.writes += len(c.ops)
	}
	start, before := time.Now(), s.server()
	err = parallel(s.workers, len(chains), func(i int) error {
		for _, o := range chains[i].ops {
			if err := o.send(ctx, clients.RESTClient()); err != nil {
				return fmt.Errorf("floor: %s %s: %w", o.verb, o.path, err)
			}
		}
		return nil
	})
	f.time, f.cpu = time.Since(start), s.server()-before
	return f, err
}

func (o op) send(ctx context.Context, c rest.Interface) error {
	var req *rest.Request
	switch o.verb {
	case http.MethodPost:
		req = c.Post().SetHeader("Content-Type", "application/json")
	default:
		req = c.Patch(o.patch)
	}
	req = req.AbsPath(o.path).Body(o.body)
	if o.patch == types.ApplyPatchType {
		req = req.Param("fieldManager", "floor").Param("force", "true")
	}
	_, err := req.Do(ctx).Raw()
	return err
}

// floorChains are the requests that make copies of all objects in the namespace,
// and those of counts.
func floorChains(ctx context.Context, config *rest.Config, namespace string, counts standalone.Requests) ([]chain, error) {
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var chains []chain
	for _, gvr := range written {
		objects, err := copies(ctx, reader, gvr, namespace)
		if err != nil {
			return nil, err
		}
		k := kind{gvr: gvr, namespace: namespace, objects: objects, counts: counts}
		chains = append(chains, k.chains()...)
	}
	return chains, nil
}

// copies returns the objects of the measured namespace, fit to be created in
// the other one.
func copies(ctx context.Context, reader dynamic.Interface, gvr schema.GroupVersionResource, target string) ([]unstructured.Unstructured, error) {
	list, err := reader.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvr.Resource, err)
	}
	var out []unstructured.Unstructured
	for _, obj := range list.Items {
		if obj.GetName() == "kube-root-ca.crt" || slices.Contains([]string{sshKey, "osp-secret", "rabbitmq-cell1"}, obj.GetName()) {
			continue
		}
		clean(&obj, target)
		out = append(out, obj)
	}
	return out, nil
}

// clean removes what the API server sets. The owner, which does not exist in
// the other namespace, becomes an annotation of about the same length, or the
// object would be collected.
func clean(obj *unstructured.Unstructured, namespace string) {
	annotations := obj.GetAnnotations()
	if owners := obj.GetOwnerReferences(); len(owners) > 0 {
		text, _ := json.Marshal(owners[0]) // it came from JSON
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["floor/owner"] = string(text)
	}
	fresh := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}
	for key, value := range obj.Object {
		if key != "metadata" {
			fresh[key] = value
		}
	}
	labels, finalizers, name := obj.GetLabels(), obj.GetFinalizers(), obj.GetName()
	obj.Object = fresh
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	if obj.GetKind() == "OpenStackAnsibleEE" {
		obj.SetFinalizers(finalizers) // the others get theirs later
	}
	if obj.GetKind() == "Job" {
		suspend(obj)
	}
}

// suspend keeps a Job from being run, and removes what its controller added.
func suspend(job *unstructured.Unstructured) {
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	template, _, _ := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	maps.DeleteFunc(template, func(key, _ string) bool {
		return strings.HasSuffix(key, "controller-uid") || strings.HasSuffix(key, "job-name")
	})
	own := job.GetLabels()
	maps.DeleteFunc(own, func(key, _ string) bool {
		return strings.HasSuffix(key, "controller-uid") || strings.HasSuffix(key, "job-name")
	})
	job.SetLabels(own)
	_ = unstructured.SetNestedStringMap(job.Object, template, "spec", "template", "metadata", "labels")
	_ = unstructured.SetNestedField(job.Object, true, "spec", "suspend")
	_ = unstructured.SetNestedField(job.Object, "Failed", "spec", "podReplacementPolicy")
}

// kind is one resource with what was done to it.
type kind struct {
	gvr       schema.GroupVersionResource
	namespace string
	objects   []unstructured.Unstructured
	counts    standalone.Requests
}

func (k kind) count(subresource, verb string) int {
	return k.counts[standalone.Request{Group: k.gvr.Group, Resource: k.gvr.Resource, Subresource: subresource, Verb: verb}]
}

// share of a total that falls to the i-th object.
func (k kind) share(total, i int) int {
	n := len(k.objects)
	return (i+1)*total/n - i*total/n
}

func (k kind) path(name, subresource string) string {
	parts := []string{"/apis", k.gvr.Group, k.gvr.Version, "namespaces", k.namespace, k.gvr.Resource, name, subresource}
	if k.gvr.Group == "" {
		parts[0], parts[1] = "/api", ""
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "/")
}

func (k kind) chains() []chain {
	var out []chain
	for i := range k.objects {
		out = append(out, chain{turn: float64(i) / float64(len(k.objects)), ops: k.ops(i)})
	}
	return out
}

// ops are the requests for one object: it is created, patched, and its status
// is written again and again.
func (k kind) ops(i int) []op {
	obj := k.objects[i]
	status, _ := obj.Object["status"].(map[string]any)
	bare := obj.DeepCopy()
	delete(bare.Object, "status")
	body := encode(bare.Object)
	applies := k.count("", "APPLY")
	var ops []op
	if applies >= len(k.objects) {
		for j := range k.share(applies, i) {
			bare.SetLabels(map[string]string{"floor": fmt.Sprint(j)})
			ops = append(ops, op{http.MethodPatch, k.path(obj.GetName(), ""), types.ApplyPatchType, encode(bare.Object)})
		}
	} else {
		ops = append(ops, op{verb: http.MethodPost, path: k.path("", ""), body: body})
	}
	for j := range k.share(k.count("", "PATCH"), i) {
		patch := encode(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"floor/patched": fmt.Sprintf("%d: about as many bytes as a reference to an owner or a finalizer have", j),
		}}})
		ops = append(ops, op{http.MethodPatch, k.path(obj.GetName(), ""), types.MergePatchType, patch})
	}
	applied := k.share(k.count("status", "APPLY"), i)
	for j := range applied {
		entry := map[string]any{"name": "nova", "ready": j == applied-1, "message": fmt.Sprintf("%d being deployed", j), "kind": "NovaExternalCompute", "objectName": obj.GetName()}
		text := encode(map[string]any{
			"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": map[string]any{"name": obj.GetName()},
			"status": map[string]any{"services": []any{entry}},
		})
		ops = append(ops, op{http.MethodPatch, k.path(obj.GetName(), "status"), types.ApplyPatchType, text})
	}
	patches := k.share(k.count("status", "PATCH"), i)
	for j := range patches {
		text := encode(map[string]any{"status": partial(status, j+1, patches)})
		ops = append(ops, op{http.MethodPatch, k.path(obj.GetName(), "status"), types.MergePatchType, text})
	}
	return ops
}

// partial is the status after some of the writes: the conditions say something
// else each time, and the ledger grows.
func partial(status map[string]any, done, all int) map[string]any {
	out := map[string]any{"observedGeneration": status["observedGeneration"]}
	conditions, _ := status["conditions"].([]any)
	var changed []any
	for _, c := range conditions {
		condition := maps.Clone(c.(map[string]any))
		if condition["type"] == "Ready" || condition["type"] == "DeploymentReady" {
			condition["message"] = fmt.Sprintf("Step %d of %d: is running in edpm-compute-r00-configure-network-0123456789", done, all)
		}
		changed = append(changed, condition)
	}
	out["conditions"] = changed
	for _, ledger := range []string{"hash", "runs"} {
		records, _ := status[ledger].(map[string]any)
		if steps := slices.Sorted(maps.Keys(records)); len(steps) > 0 && done*len(steps) >= all {
			newest := steps[done*len(steps)/all-1]
			out[ledger] = map[string]any{newest: records[newest]}
		}
	}
	if hosts, ok := status["hosts"]; ok && done == all {
		out["hosts"] = hosts
	}
	return out
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // values come from JSON
	}
	return text
}

// eventChains are n events like those that the manager emitted.
func eventChains(ctx context.Context, config *rest.Config, n int) ([]chain, error) {
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := reader.Resource(eventResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	var mine []unstructured.Unstructured
	for _, e := range list.Items {
		regarding, _, _ := unstructured.NestedString(e.Object, "regarding", "apiVersion")
		if strings.Contains(regarding, ".openstack.org/") {
			mine = append(mine, e)
		}
	}
	k := kind{gvr: eventResource, namespace: floorNamespace}
	var out []chain
	for i := range max(0, n) {
		if len(mine) == 0 {
			break
		}
		e := mine[i%len(mine)].DeepCopy()
		fresh := &unstructured.Unstructured{Object: maps.Clone(e.Object)}
		delete(fresh.Object, "metadata")
		fresh.SetNamespace(floorNamespace)
		fresh.SetName(fmt.Sprintf("floor-%d", i))
		if err := unstructured.SetNestedField(fresh.Object, floorNamespace, "regarding", "namespace"); err != nil {
			return nil, err
		}
		out = append(out, chain{turn: float64(i) / float64(n), ops: []op{{verb: http.MethodPost, path: k.path("", ""), body: encode(fresh.Object)}}})
	}
	return out, nil
}
