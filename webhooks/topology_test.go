package webhooks_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// newTopology makes a Topology of the YAML of its spec.
func newTopology(w world, spec string) *topologyv1.Topology {
	GinkgoHelper()
	return with(w, "Topology", spec).(*topologyv1.Topology)
}

// written makes what a person writes: fields that no type knows are sent as well.
func written(w world, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	fields := map[string]any{}
	Expect(yaml.Unmarshal([]byte(spec), &fields)).To(Succeed())
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	obj.SetGroupVersionKind(topologyv1.GroupVersion.WithKind("Topology"))
	obj.SetNamespace(string(w))
	obj.SetName("x")
	return obj
}

// asPod tries, without storing it, a pod to which the Topology was applied: the
// API server judges it by the rules that the StatefulSet of a service would meet.
func asPod(w world, t *topologyv1.Topology) error {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	topology.Apply(&template, t, &metav1.LabelSelector{MatchLabels: map[string]string{"service": "glance"}})
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.Labels = string(w), "probe", map[string]string{"service": "glance", "a": "b"}
	return api.Create(ctx, pod, client.DryRunAll)
}

// constrained is a constraint that is in order but for the given fields.
func constrained(fields string) string {
	return "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule" + fields + "}]"
}

const (
	// refusedByKubernetes are mistakes that a pod could not have.
	refusedByKubernetes = true
	// mendedByKubernetes are mistakes that a pod could have and that would leave
	// it Pending, or say nothing.
	mendedByKubernetes = false
)

var _ = Describe("A Topology", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	DescribeTable("refuses a mistake with field, value and remedy",
		func(kubernetes bool, spec string, parts ...string) {
			obj, t := written(w, spec), &topologyv1.Topology{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, t)).To(Succeed())
			refused(api.Create(ctx, obj), parts...)
			if err := asPod(w, t); kubernetes {
				Expect(err).To(HaveOccurred(), "Kubernetes should refuse a pod with the same mistake")
			} else {
				Expect(err).NotTo(HaveOccurred(), "Kubernetes should accept a pod with the same mistake")
			}
		},
		Entry("the misspelling of the specification", mendedByKubernetes, `topologySpreadConstraint: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]`,
			"spec.topologySpreadConstraint: Forbidden", "write topologySpreadConstraints"),
		Entry("the misspelling next to the right field", mendedByKubernetes, constrained("")+"\ntopologySpreadConstraint: [{anything: goes}]",
			"spec.topologySpreadConstraint: Forbidden", "write topologySpreadConstraints"),
		Entry("nothing at all", mendedByKubernetes, `enforcement: Hold`, "spec: Invalid value", "set topologySpreadConstraints, affinity or both"),
		Entry("empty fields", mendedByKubernetes, "topologySpreadConstraints: []\naffinity: {}", "spec: Invalid value", "is empty: set"),
		Entry("another enforcement", mendedByKubernetes, constrained("")+"\nenforcement: Block", "spec.enforcement", `"Block"`, `"Warn"`, `"Hold"`),

		Entry("no skew allowed", refusedByKubernetes, `topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]`,
			"spec.topologySpreadConstraints[0].maxSkew", "is less than 1", "set a number from 1"),
		Entry("no key", refusedByKubernetes, `topologySpreadConstraints: [{maxSkew: 1, topologyKey: "", whenUnsatisfiable: DoNotSchedule}]`,
			"spec.topologySpreadConstraints[0].topologyKey", "is empty", "for example topology.kubernetes.io/zone"),
		Entry("a key that is no label", mendedByKubernetes, `topologySpreadConstraints: [{maxSkew: 1, topologyKey: "the zone", whenUnsatisfiable: DoNotSchedule}]`,
			`spec.topologySpreadConstraints[0].topologyKey: Invalid value: "the zone"`, "for example topology.kubernetes.io/zone"),
		Entry("another word", refusedByKubernetes, `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}]`,
			"spec.topologySpreadConstraints[0].whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway", "set one of these"),
		Entry("no domain at least", refusedByKubernetes, constrained(", minDomains: 0"), "spec.topologySpreadConstraints[0].minDomains", "is less than 1", "set a number from 1"),
		Entry("minDomains that has no effect", refusedByKubernetes, `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]`,
			"spec.topologySpreadConstraints[0].minDomains", "DoNotSchedule", "remove minDomains"),
		Entry("another policy for affinity", refusedByKubernetes, constrained(", nodeAffinityPolicy: honour"), "spec.topologySpreadConstraints[0].nodeAffinityPolicy", "Honor", "Ignore"),
		Entry("another policy for taints", refusedByKubernetes, constrained(", nodeTaintsPolicy: never"), "spec.topologySpreadConstraints[0].nodeTaintsPolicy", "Honor", "Ignore"),
		Entry("a constraint twice", refusedByKubernetes,
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
			"spec.topologySpreadConstraints[1]: Duplicate value", `"topologyKey":"zone"`),
		Entry("a selector with a wrong label", refusedByKubernetes, constrained(`, labelSelector: {matchLabels: {"a b": c}}`),
			`spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "a b"`, "e.g."),
		Entry("a selector with a wrong value", refusedByKubernetes, constrained(`, labelSelector: {matchExpressions: [{key: glanceAPI, operator: In, values: ["c zone"]}]}`),
			`spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values[0]: Invalid value: "c zone"`, "e.g."),
		Entry("a selector without values", refusedByKubernetes, constrained(`, labelSelector: {matchExpressions: [{key: glanceAPI, operator: In}]}`),
			`spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values: Required value`, "must be specified"),
		Entry("a selector with another operator", refusedByKubernetes, constrained(`, labelSelector: {matchExpressions: [{key: glanceAPI, operator: is, values: [a]}]}`),
			`spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator: Invalid value: "is"`, "use In, NotIn, Exists or DoesNotExist"),
		Entry("keys that are selected already", refusedByKubernetes, constrained(`, labelSelector: {matchLabels: {service: glance}}, matchLabelKeys: [service]`),
			`spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "service"`, "remove it from one of the two"),
		Entry("keys that an expression selects already", refusedByKubernetes, constrained(`, labelSelector: {matchExpressions: [{key: service, operator: Exists}]}, matchLabelKeys: [service]`),
			`spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "service"`, "remove it from one of the two"),
		Entry("keys that are no labels", refusedByKubernetes, constrained(`, labelSelector: {}, matchLabelKeys: ["a b"]`),
			`spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "a b"`, "for example controller-revision-hash"),

		Entry("nodes of no term", refusedByKubernetes, `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`,
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value", "add a term"),
		Entry("nodes of an empty term", mendedByKubernetes, nodes(`{}`), "nodeSelectorTerms[0]: Required value", "matches no node"),
		Entry("nodes by another operator", refusedByKubernetes, nodes(`{matchExpressions: [{key: zone, operator: Is, values: [zoneA]}]}`),
			`nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is"`, `"In"`),
		Entry("nodes by a key that is no label", refusedByKubernetes, nodes(`{matchExpressions: [{key: a b, operator: Exists}]}`),
			`nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "a b"`, "for example topology.kubernetes.io/zone"),
		Entry("nodes by no value", refusedByKubernetes, nodes(`{matchExpressions: [{key: zone, operator: NotIn}]}`), "matchExpressions[0].values: Required value", "add values"),
		Entry("nodes by a value too many", refusedByKubernetes, nodes(`{matchExpressions: [{key: zone, operator: Exists, values: [zoneA]}]}`),
			"matchExpressions[0].values: Forbidden", "remove them"),
		Entry("nodes by a wrong value", refusedByKubernetes, nodes(`{matchExpressions: [{key: zone, operator: In, values: [zoneA, zone B]}]}`),
			`matchExpressions[0].values[1]: Invalid value: "zone B"`, "letters, digits"),
		Entry("nodes with more than a word", mendedByKubernetes, nodes(`{matchExpressions: [{key: cpus, operator: Gt, values: [many]}]}`),
			`matchExpressions[0].values[0]: Invalid value: "many"`, `for example "4"`),
		Entry("nodes with more than two numbers", refusedByKubernetes, nodes(`{matchExpressions: [{key: cpus, operator: Gt, values: ["1", "2"]}]}`),
			`matchExpressions[0].values: Invalid value`, `exactly one value`),
		Entry("nodes by another field", refusedByKubernetes, nodes(`{matchFields: [{key: spec.taints, operator: In, values: [a]}]}`),
			`matchFields[0].key: Unsupported value: "spec.taints"`, `"metadata.name"`),
		Entry("nodes by two names", refusedByKubernetes, nodes(`{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}`),
			`matchFields[0].values: Invalid value`, "exactly one node"),
		Entry("nodes by a name with another operator", refusedByKubernetes, nodes(`{matchFields: [{key: metadata.name, operator: Exists, values: [a]}]}`),
			`matchFields[0].operator: Unsupported value: "Exists"`, `"NotIn"`),
		Entry("preferred nodes without weight", refusedByKubernetes,
			`affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: zone, operator: Exists}]}}]}}`,
			`preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0`, "from 1"),
		Entry("preferred pods with too much weight", refusedByKubernetes,
			`affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: zone}}]}}`,
			`spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101`, "to 100"),
		Entry("pods without a key", refusedByKubernetes, pods(`topologyKey: ""`), "topologyKey: Required value", "for example topology.kubernetes.io/zone"),
		Entry("pods with a wrong key", refusedByKubernetes, pods(`topologyKey: a/b/c`), `topologyKey: Invalid value: "a/b/c"`, "is not a valid name of a label"),
		Entry("pods with a wrong selector", refusedByKubernetes, pods(`topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}`),
			"labelSelector.matchExpressions[0].values: Forbidden"),
		Entry("pods of namespaces with a wrong selector", refusedByKubernetes, pods(`topologyKey: zone, namespaceSelector: {matchLabels: {"a b": c}}`),
			`namespaceSelector.matchLabels: Invalid value: "a b"`),
		Entry("pods of a wrong namespace", refusedByKubernetes, pods(`topologyKey: zone, namespaces: [Open_Stack]`), `namespaces[0]: Invalid value: "Open_Stack"`, "lower case"),
		Entry("pods of an empty namespace", refusedByKubernetes, pods(`topologyKey: zone, namespaces: [""]`), `namespaces[0]: Required value`, "remove the entry"),
		Entry("pods with keys that are selected already", refusedByKubernetes, pods(`topologyKey: zone, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [a]`),
			`matchLabelKeys[0]: Invalid value: "a"`, "remove it from one of the two"),
		Entry("pods with keys to differ in and no selector", refusedByKubernetes, pods(`topologyKey: zone, mismatchLabelKeys: [a]`), `mismatchLabelKeys: Forbidden`, "add it"),
		Entry("pods with keys both to match and to differ in", refusedByKubernetes, pods(`topologyKey: zone, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]`),
			`mismatchLabelKeys[0]: Invalid value: "a"`, "no pod matches both"),
	)

	DescribeTable("passes when it is valid, and so does a pod to which it is applied",
		func(spec string) {
			t := newTopology(w, spec)
			Expect(api.Create(ctx, t)).To(Succeed())
			Expect(asPod(w, t)).To(Succeed())
		},
		Entry("a constraint without a selector", constrained("")),
		Entry("every field of a constraint", constrained(`, minDomains: 3, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore, labelSelector: {matchLabels: {service: glance}}, matchLabelKeys: [controller-revision-hash]`)),
		Entry("one key, both strict and lenient",
			"topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]"),
		Entry("keys without a selector, as that of each service is filled in", constrained(`, matchLabelKeys: [controller-revision-hash]`)),
		Entry("keys that the selector of the service has as well", constrained(`, matchLabelKeys: [service]`)),
		Entry("a selector of nothing", constrained(`, labelSelector: {}`)),
		Entry("nodes of either of two terms", nodes(`{matchExpressions: [{key: zone, operator: In, values: [zoneA]}]}, {matchFields: [{key: metadata.name, operator: In, values: [master-0]}]}`)),
		Entry("nodes by number", nodes(`{matchExpressions: [{key: cpus, operator: Gt, values: ["4"]}]}`)),
		Entry("an anti-affinity that takes the default away", `affinity: {podAntiAffinity: {}}`),
		Entry("pods that differ in a selected label", pods(`topologyKey: zone, labelSelector: {matchExpressions: [{key: tenant, operator: Exists}]}, mismatchLabelKeys: [tenant], namespaces: [openstack]`)),
	)

	It("causes a warning when it counts no pods", func() {
		warnings.take()
		Expect(api.Create(ctx, newTopology(w, constrained(`, labelSelector: {}`)))).To(Succeed())
		Expect(warnings.take()).To(ConsistOf(HavePrefix("spec.topologySpreadConstraints[0].labelSelector: {} selects no pods")))
	})

	DescribeTable("with a rule that has no effect is accepted with a warning",
		func(spec, warning string) {
			warnings.take()
			Expect(api.Create(ctx, newTopology(w, spec))).To(Succeed())
			Expect(warnings.take()).To(ConsistOf(HavePrefix(warning)))
		},
		Entry("a key of Deployments", constrained(`, labelSelector: {matchLabels: {service: glance}}, matchLabelKeys: [pod-template-hash]`),
			"spec.topologySpreadConstraints[0].matchLabelKeys[0]: pod-template-hash is a label of pods of Deployments"),
		Entry("pods without a selector", pods(`topologyKey: kubernetes.io/hostname`),
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: is missing"),
		Entry("preferred pods without a selector", `affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}`,
			"spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: is missing"),
		Entry("pods with a key of Deployments", pods(`topologyKey: zone, labelSelector: {matchLabels: {service: glance}}, matchLabelKeys: [pod-template-hash]`),
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: pod-template-hash"),
	)

	It("warns by default", func() {
		t := newTopology(w, constrained(""))
		Expect(api.Create(ctx, t)).To(Succeed())
		Expect(t.Spec.Enforcement).To(Equal(topologyv1.Warn))
	})

	It("takes finalizers and a status without another validation of its spec", func() {
		t := newTopology(w, constrained(""))
		Expect(api.Create(ctx, t)).To(Succeed())
		t.Finalizers = []string{"openstack.org/glanceapi-a"}
		Expect(api.Update(ctx, t)).To(Succeed())
		t.Status.ConsumerCount = 1
		Expect(api.Status().Update(ctx, t)).To(Succeed())
	})

	It("refuses an update that makes it invalid", func() {
		t := newTopology(w, constrained(""))
		Expect(api.Create(ctx, t)).To(Succeed())
		t.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		refused(api.Update(ctx, t), `labelSelector.matchLabels: Invalid value: "a b"`)
	})
})

// nodes are required nodes of the given terms.
func nodes(terms string) string {
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
}

// pods is a required term about other pods.
func pods(term string) string {
	return "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + term + "}]}}"
}
