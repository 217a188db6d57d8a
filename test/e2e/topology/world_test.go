package topology

import (
	"context"
	"embed"
	"encoding/json"
	"io"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// strict refuses fields that do not exist, as kubectl does.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// namespace of the seeds.
const namespace = "openstack"

//go:embed testdata
var testdata embed.FS

// seed returns YAML of the seeds.
func seed(file string) string {
	GinkgoHelper()
	text, err := testdata.ReadFile("testdata/" + file)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// enter makes the namespace of the seeds. At the end of the container that
// called it, all that is in it is deleted, Topologies in use included.
func enter(ctx context.Context) {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, ns))).To(Succeed())
	DeferCleanup(leave, NodeTimeout(18*time.Minute))
	Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: named("osp-secret"), StringData: map[string]string{
		"GlancePassword": "12345678", "GlanceDatabasePassword": "12345678",
	}})).To(Succeed())
}

// leave empties the namespace and keeps it: the namespace controller asks for the
// objects of every kind, which takes longer than most stories. Services are deleted
// first, with their pods.
func leave(ctx SpecContext) {
	removeAll(ctx, namespace, &openstackv1.OpenStackControlPlane{}, &glancev1.Glance{}, &dataplanev1.OpenStackDataPlaneRole{})
	Eventually(pods).WithContext(ctx).WithTimeout(9*time.Minute).Should(BeEmpty(), "pods are deleted with their service")
	removeAll(ctx, namespace, &glancev1.GlanceAPI{}, &appsv1.StatefulSet{}, &corev1.Service{}, &corev1.Secret{},
		&corev1.PersistentVolumeClaim{}, &topologyv1.Topology{})
	Expect(k8s.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(namespace))).To(Succeed())
}

// removeAll deletes the objects of some kinds in a namespace, and waits until there
// are none.
func removeAll(ctx context.Context, ns string, kinds ...client.Object) {
	GinkgoHelper()
	for _, kind := range kinds {
		Expect(k8s.DeleteAllOf(ctx, kind, client.InNamespace(ns), client.GracePeriodSeconds(0))).To(Succeed(), "%T", kind)
	}
	for _, kind := range kinds {
		Eventually(remaining).WithArguments(ctx, ns, kind).WithTimeout(6*time.Minute).Should(BeEmpty(), "something holds objects: %T", kind)
	}
}

// remaining returns the names of the objects of a kind in a namespace.
func remaining(ctx context.Context, ns string, kind client.Object) ([]string, error) {
	gvk, err := apiutil.GVKForObject(kind, k8s.Scheme())
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	err = k8s.List(ctx, list, client.InNamespace(ns))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

// create does what "oc create -f" does with the documents of a text.
func create(ctx context.Context, text string) error {
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if len(obj.Object) == 0 {
			continue // a document of comments
		}
		if err := k8s.Create(ctx, obj, strict); err != nil {
			return err
		}
	}
}

func mustCreate(ctx context.Context, files ...string) {
	GinkgoHelper()
	for _, file := range files {
		Expect(create(ctx, seed(file))).To(Succeed(), file)
	}
}

// edit does what a person does with "oc edit oscp" who is asked to change this
// fragment: glance, or glanceAPIs of its template. In fragments of the seeds,
// <...> stands for what is there and stays.
func edit(ctx context.Context, fragment string) {
	GinkgoHelper()
	const same = "<...>"
	change := map[string]any{}
	Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(fragment, same, "")), &change)).To(Succeed(), fragment)
	if strings.Contains(fragment, same) {
		prune(change)
	}
	if _, whole := change["glance"]; !whole {
		change = map[string]any{"glance": map[string]any{"template": change}}
	}
	patch, err := json.Marshal(map[string]any{"spec": change})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Patch(ctx, controlPlane(), client.RawPatch(types.MergePatchType, patch), strict)).To(Succeed(), fragment)
}

// prune removes what has no value.
func prune(tree map[string]any) {
	for key, value := range tree {
		switch v := value.(type) {
		case nil:
			delete(tree, key)
		case map[string]any:
			prune(v)
		}
	}
}

func controlPlane() *openstackv1.OpenStackControlPlane {
	return &openstackv1.OpenStackControlPlane{ObjectMeta: named("openstack")}
}

func api(name string) *glancev1.GlanceAPI { return &glancev1.GlanceAPI{ObjectMeta: named(name)} }

func topology(name string) *topologyv1.Topology { return &topologyv1.Topology{ObjectMeta: named(name)} }

func statefulSet(ctx context.Context, name string) *appsv1.StatefulSet {
	GinkgoHelper()
	set := &appsv1.StatefulSet{ObjectMeta: named(name)}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	return set
}

// change reads an object, changes it and writes the difference.
func change[T client.Object](ctx context.Context, obj T, mutate func(T)) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	Expect(k8s.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
}

// current returns a function for Eventually that reads an object.
func current[T phase.Object](ctx context.Context, obj T) func() (phase.Object, error) {
	return expect.Read(ctx, k8s, obj)
}

// topologyUsers are the consumers that a Topology shows, as kind/name.
func topologyUsers(ctx context.Context, name string) ([]string, error) {
	t := topology(name)
	err := k8s.Get(ctx, client.ObjectKeyFromObject(t), t)
	users := []string{}
	for _, c := range t.Status.Consumers {
		users = append(users, c.Kind+"/"+c.Name)
	}
	return users, err
}
