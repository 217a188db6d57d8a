package controllers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"github.com/prometheus/common/expfmt"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// poison is the name of the Secret that everything names, and of a key of it.
const poison = "poison"

// secretText is what a user may have put into a Secret, and parts of it by
// which it is known wherever it shows.
type secretText struct {
	text  string
	parts []string
}

// keys are all that anything reads of a Secret; each has the same text.
var keys = []string{
	"ssh-privatekey", "transport_url", "ServicePassword", "CellDatabasePassword", "APIDatabasePassword", "MetadataSecret",
	"NovaPassword", "NovaCellDatabasePassword", "NovaAPIDatabasePassword", "GlancePassword", "GlanceDatabasePassword", poison,
	neutronv1.SouthboundKey, neutronv1.TLSSecretKey, neutronv1.MetadataSharedSecretKey, neutronv1.NovaMetadataHostKey, "tls.crt", "tls.key", "ca.crt",
}

// allKinds are empty objects of all kinds of edpm-operators.
func allKinds() []client.Object {
	var kinds []client.Object
	for gvk, t := range env.Scheme.AllKnownTypes() {
		obj, ok := reflect.New(t).Interface().(client.Object)
		if ok && strings.HasSuffix(gvk.Group, ".openstack.org") {
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			kinds = append(kinds, obj)
		}
	}
	return kinds
}

// takers are objects that name the Secret in every field that can.
func takers(ns string) []client.Object {
	mounts := []ansibleeev1.ExtraMount{{
		Volumes: []ansibleeev1.ExtraVolume{
			{Name: "whole", Secret: &corev1.SecretVolumeSource{SecretName: poison}},
			{Name: "part", Projected: &ansibleeev1.ExtraProjection{Sources: []ansibleeev1.ExtraProjectionSource{{
				Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: poison}},
			}}}},
		},
		Mounts: []corev1.VolumeMount{{Name: "whole", MountPath: "/whole"}, {Name: "part", MountPath: "/part"}},
	}}
	vars := []corev1.EnvVar{envFromSecret("TOKEN", poison, poison)}

	role, node := MakeRole("role", ns).Cell("cell1").Annotation(neutronv1.OVNAnnotation, poison).Annotation("example.org/agent", "true").Services("own").Obj(), MakeNode("n", ns).Role("role").Obj()
	role.Spec.PreProvisioned, role.Spec.Env, role.Spec.NodeTemplate.ExtraMounts = ptr.To(true), vars, mounts
	role.Spec.BaremetalSetTemplate = &dataplanev1.BaremetalSetTemplate{BaremetalHosts: map[string]dataplanev1.BaremetalHost{"h": {}}}
	node.Spec.Env, node.Spec.Node.ExtraMounts = vars, mounts
	role.Spec.NodeTemplate.JumpHost, node.Spec.Node.JumpHost = MakeJumpHost("bastion", ""), MakeJumpHost("bastion", "")
	all := MakeDataPlane("all", ns)
	all.Spec.Roles["all-role"], all.Spec.Nodes["all-n"] = *role.Spec.DeepCopy(), *node.Spec.DeepCopy()

	cell := MakeCell("cell1", ns).Obj()
	cell.Spec.CellDatabaseHostname, cell.Spec.APIDatabaseHostname = "db", "db"
	cell.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{{}}
	nova := MakeNova("osp", ns, poison, "cell2")
	nova.Spec.PasswordSelectors.CellDatabase = poison
	nova.Spec.CellTemplates["cell2"] = novav1.NovaCellTemplate{ComputeTemplates: cell.Spec.ComputeTemplates}
	pods := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pods"}, Spec: novav1.NovaComputeSpec{CellName: "cell1"}}
	glance := &glancev1.Glance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "glance"}}
	glance.Spec.KeystoneAuthURL, glance.Spec.DatabaseHostname = "http://keystone.example:5000", "db"
	glance.Spec.Storage.External = ptr.To(true)
	glance.Spec.GlanceAPIs = map[string]glancev1.GlanceAPITemplate{"default": {}, "plain": {}}
	plane := &openstackv1.OpenStackControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plane"}}
	plane.Spec.Glance = &openstackv1.GlanceSection{Template: *glance.Spec.DeepCopy()}
	plane.Spec.Nova = &openstackv1.NovaSection{Template: *nova.Spec.DeepCopy()}
	run := MakeRun("r", ns)
	run.Spec.Env, run.Spec.ExtraMounts, run.Spec.JumpHost = vars, mounts, MakeJumpHost("bastion", "")
	compute := MakeCompute("n", ns, "cell1")
	compute.Spec.JumpHost = MakeJumpHost("bastion", "")

	class := MakeServiceClass("agent", ns).SecretFile("file", poison, poison).Obj()
	objects := []client.Object{MakeService("own", ns), class, role, compute, pods, node, all, cell, nova.DeepCopy(), glance, plane, run}
	for _, o := range objects {
		spec, _, _ := specOf(o)
		fill(spec, poison)
	}
	return objects
}

// everything is all of a namespace but its Secrets, as text.
func everything(ns string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, kind := range append(allKinds(), &corev1.ConfigMap{}, &batchv1.Job{}, &corev1.Pod{}, &appsv1.StatefulSet{}, &corev1.Service{}, &eventsv1.Event{}) {
		gvk, err := api.GroupVersionKindFor(kind)
		Expect(err).NotTo(HaveOccurred())
		gvk.Kind += "List"
		list, err := env.Scheme.New(gvk)
		if err != nil {
			continue // no kind of its own, such as ListOptions
		}
		Expect(api.List(ctx, list.(client.ObjectList), client.InNamespace(ns))).To(Succeed())
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		found[gvk.Kind] = string(text)
	}
	return found
}

func metricsText() string {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&out, f)
		Expect(err).NotTo(HaveOccurred())
	}
	return out.String()
}

// unnamed are the fields of all kinds that could name a Secret and do so on no
// object of the namespace.
func unnamed(ns string) []string {
	GinkgoHelper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, kind := range allKinds() {
		spec, path, ok := specOf(kind)
		if !ok {
			continue
		}
		for _, field := range secretFields(spec.Type(), path, nil) {
			want[field] = true
		}
		gvk := kind.GetObjectKind().GroupVersionKind()
		gvk.Kind += "List"
		list, err := env.Scheme.New(gvk)
		Expect(err).NotTo(HaveOccurred())
		Expect(api.List(ctx, list.(client.ObjectList), client.InNamespace(ns))).To(Succeed())
		items := reflect.ValueOf(list).Elem().FieldByName("Items")
		for i := range items.Len() {
			for _, field := range filled(items.Index(i).FieldByName("Spec"), path, poison) {
				got[field] = true
			}
		}
	}
	Expect(len(want)).To(BeNumerically(">", 50), "the fields are not found any more")
	maps.DeleteFunc(want, func(field string, _ bool) bool { return got[field] })
	return slices.Sorted(maps.Keys(want))
}

var _ = DescribeTable("The manager shows the text of a Secret nowhere, whatever refers to it and whatever it is:",
	func(secret secretText) {
		w := newWorld()
		data := map[string][]byte{}
		for _, key := range keys {
			data[key] = []byte(secret.text)
		}
		w.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: poison}, Data: data})
		w.make(takers(w.ns)...)
		By("naming it in every field of every kind")
		Eventually(func() []string { return unnamed(w.ns) }).Should(BeEmpty(), "every field that names a Secret belongs into takers")
		for _, o := range []judged{w.node("n"), MakeCell("cell1", w.ns).Obj(), MakeNova("osp", w.ns, ""), MakeRun("r", w.ns)} {
			Eventually(func(g Gomega) {
				g.Expect(shown(g, o, condition.ReadyCondition)).NotTo(Or(Equal("none"), HavePrefix("Unknown"), HavePrefix("not")))
			}).Should(Succeed())
		}
		Eventually(func(g Gomega) {
			apis := &glancev1.GlanceAPIList{}
			g.Expect(api.List(ctx, apis, client.InNamespace(w.ns))).To(Succeed())
			g.Expect(apis.Items).NotTo(BeEmpty())
			for i := range apis.Items {
				conditions := apis.Items[i].Status.Conditions
				g.Expect(conditions.IsTrue(condition.InputReadyCondition) || conditions.IsFalse(condition.ServiceConfigReadyCondition)).To(BeTrue(), "%+v", conditions)
				// The texts are not valid oslo.config, which is reported.
				g.Expect(asText(conditions)).To(ContainSubstring("spec.customServiceConfigSecrets: Secret \\\"poison\\\", key"))
			}
		}).Should(Succeed())
		time.Sleep(still) // events come after the status

		shown := everything(w.ns)
		shown["log"], shown["metrics"] = CurrentSpecReport().CapturedGinkgoWriterOutput, metricsText()
		Expect(shown["log"]).NotTo(BeEmpty(), "the log of the manager is part of it")
		for where, text := range shown {
			for _, part := range secret.parts {
				if at := strings.Index(text, part); at >= 0 {
					Fail(fmt.Sprintf("%q is in %s: ...%s...", part, where, text[max(0, at-300):min(len(text), at+100)]))
				}
			}
		}
	},
	Entry("a private key", secretText{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUA\nZWQyNTUxOQAAACBsecretpart\n-----END OPENSSH PRIVATE KEY-----\n",
		[]string{"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUA", "secretpart", "OPENSSH PRIVATE KEY"},
	}),
	Entry("the credentials of a registry", secretText{
		"{\n\"auths\": {\"registry.example\": {\"username\": \"robot99\",\n\"auth\": \"cm9ib3Q6aHVudGVyMg==\"}}\n}\n",
		[]string{"robot99", "cm9ib3Q6aHVudGVyMg", "registry.example"},
	}),
	Entry("a password and nothing else", secretText{"correcthorse%batterystaple", []string{"correcthorse", "batterystaple"}}),
	Entry("a broken oslo.config", secretText{
		"stray5555 = hunter2222\n[database]\nconnection hunter3333\nplain4444\n[unclosed6666\n  indented7777\n",
		[]string{"hunter2222", "hunter3333", "plain4444", "stray5555", "unclosed6666", "indented7777"},
	}),
)
