package controllers_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// generated is an object that the operators make, and how it shows that its name
// is taken.
type generated struct {
	client.Object // as somebody else made it, before
	by            judged
	shows         condition.Type
}

// together reports whether two objects are made together or not at all: those of one
// service in pods.
func (g generated) together(other generated) bool {
	return g.shows == condition.DeploymentReadyCondition && other.shows == g.shows && kindOf(other.by) == kindOf(g.by) && other.by.GetName() == g.by.GetName()
}

func (g generated) String() string { return kindOf(g.Object) + "/" + g.GetName() }

func kindOf(obj client.Object) string {
	GinkgoHelper()
	gvk, err := apiutil.GVKForObject(obj, env.Scheme)
	Expect(err).NotTo(HaveOccurred())
	return gvk.Kind
}

// stack is a world with one of everything, and what is generated for it.
type stack struct{ *world }

func (s stack) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

func (s stack) plane() *openstackv1.OpenStackControlPlane {
	return &openstackv1.OpenStackControlPlane{ObjectMeta: s.meta("openstack")}
}
func (s stack) glance() *glancev1.Glance { return &glancev1.Glance{ObjectMeta: s.meta("glance")} }
func (s stack) glanceAPI() *glancev1.GlanceAPI {
	return &glancev1.GlanceAPI{ObjectMeta: s.meta("glance-default-single")}
}
func (s stack) nova() *novav1.Nova          { return &novav1.Nova{ObjectMeta: s.meta("nova")} }
func (s stack) inPods() *novav1.NovaCompute { return &novav1.NovaCompute{ObjectMeta: s.meta("ironic")} }
func (s stack) secret(name string) *k8scorev1.Secret {
	return MakeSecret(name, s.ns, "theirs", "x")
}
func (s stack) service(name string) *k8scorev1.Service {
	return &k8scorev1.Service{ObjectMeta: s.meta(name), Spec: k8scorev1.ServiceSpec{Ports: []k8scorev1.ServicePort{{Port: 1}}}}
}
func (s stack) budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: s.meta(name)}
}
func (s stack) set(name string) *appsv1.StatefulSet {
	labels := map[string]string{"theirs": name}
	return &appsv1.StatefulSet{ObjectMeta: s.meta(name), Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: k8scorev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: k8scorev1.PodSpec{Containers: []k8scorev1.Container{{Name: "c", Image: "theirs"}}},
		},
	}}
}

// generated are all names that are generated for a stack but those of runs, which
// no one knows before, each after the one that it depends on.
func (s stack) generated() []generated {
	deployed, config := condition.DeploymentReadyCondition, "-config-data"
	theirGlance, theirNova, theirAPI := s.glance(), MakeNova("nova", s.ns, "theirs"), s.glanceAPI()
	theirAPI.Spec.APIName, theirAPI.Spec.APIType = "theirs", glancev1.APISingle
	all := []generated{
		{theirGlance, s.plane(), openstackv1.GlanceReadyCondition},
		{theirAPI, s.glance(), glancev1.GlanceAPIReadyCondition},
		{s.secret("glance-default-single" + config), s.glanceAPI(), deployed},
		{s.service("glance-default-single"), s.glanceAPI(), deployed},
		{s.service("glance-default-public"), s.glanceAPI(), deployed},
		{s.service("glance-default-internal"), s.glanceAPI(), deployed},
		{s.set("glance-default-single"), s.glanceAPI(), deployed},
		{s.budget("glance-default-single"), s.glanceAPI(), deployed},
		{theirNova, s.plane(), openstackv1.NovaReadyCondition},
	}
	for _, name := range []string{"nova-cell0", "nova-cell1"} {
		all = append(all,
			generated{s.secret(name), s.nova(), novav1.NovaAllCellsReadyCondition},
			generated{MakeCell(name, s.ns).Obj(), s.nova(), novav1.NovaAllCellsReadyCondition})
	}
	cell0, cell1 := MakeCell("nova-cell0", s.ns).Obj(), MakeCell("nova-cell1", s.ns).Obj()
	return append(all,
		generated{s.secret("nova-cell0-db-sync" + config), cell0, condition.DBSyncReadyCondition},
		generated{s.secret("nova-cell0-conductor" + config), cell0, deployed},
		generated{s.set("nova-cell0-conductor"), cell0, deployed},
		generated{s.budget("nova-cell0-conductor"), cell0, deployed},
		generated{s.secret("nova-cell1-compute-config"), cell1, novav1.NovaComputeServiceConfigReadyCondition},
		generated{s.secret("nova-cell1-migration-ca"), cell1, novav1.MigrationCAReadyCondition},
		generated{s.secret("nova-cell1-migration-key"), cell1, novav1.MigrationKeyReadyCondition},
		generated{s.secret("nova-cell1-db-sync" + config), cell1, condition.DBSyncReadyCondition},
		generated{s.secret("nova-cell1-conductor" + config), cell1, deployed},
		generated{s.set("nova-cell1-conductor"), cell1, deployed},
		generated{s.budget("nova-cell1-conductor"), cell1, deployed},
		generated{s.secret("ironic" + config), s.inPods(), deployed},
		generated{s.set("ironic"), s.inPods(), deployed},
		generated{s.budget("ironic"), s.inPods(), deployed},
		generated{MakeRole("compute", s.ns).Obj(), MakeDataPlane("plane", s.ns), condition.InputReadyCondition},
		generated{MakeNode("n1", s.ns).Obj(), MakeDataPlane("plane", s.ns), condition.InputReadyCondition},
		generated{MakeConfigMap("dataplanerole-compute", s.ns, "theirs", "x"), MakeRole("compute", s.ns).Obj(), condition.InputReadyCondition},
		generated{MakeConfigMap("dataplanenode-n1", s.ns, "theirs", "x"), MakeNode("n1", s.ns).Obj(), condition.InputReadyCondition},
	)
}

// elsewhere are objects whose names are tried in other stories, by pattern.
var elsewhere = map[string]string{
	`NovaExternalCompute/n1`:                          "unless its compute belongs to something else, which both say and no one overwrites",
	`OpenStackAnsibleEE/compute-[a-z-]+-[0-9a-f]{10}`: "internal/edpm: TestARunOfSomebodyElseIsLeftAlone",
	`Secret/compute-[a-z-]+-[0-9a-f]{10}`:             "internal/edpm: TestASecretOfTheNameOfTheInputsIsLeftAlone",
	`Job/compute-[a-z-]+-[0-9a-f]{10}`:                "says that a Job of its name exists already, and runs when that is deleted",
	`Job/nova-cell[01]-db-sync-[0-9a-f]{10}`:          "internal/podified: TestAJobOfSomebodyElseIsLeftAlone",
	`Event/.*`:                                        "has a name of its own each time",
}

// byHand are the objects that deploy makes.
var byHand = []string{
	"Secret/osp-secret", "Secret/ssh-key", "Secret/rabbitmq-transport-url-nova-cell0-transport", "Secret/rabbitmq-transport-url-nova-cell1-transport",
	"ConfigMap/kube-root-ca.crt",
}

// deploy makes what people make.
func (s stack) deploy() {
	GinkgoHelper()
	password := MakeSecret("osp-secret", s.ns, "NovaPassword", "p")
	password.Data = map[string][]byte{"NovaPassword": []byte("p"), "NovaCell1DatabasePassword": []byte("p"), "NovaCellDatabasePassword": []byte("p")}
	for _, cell := range []string{"cell0", "cell1"} {
		s.make(MakeSecret("rabbitmq-transport-url-nova-"+cell+"-transport", s.ns, "transport_url", "rabbit://"+cell))
	}
	plane := s.plane()
	plane.Spec.Secret = "osp-secret"
	plane.Spec.Glance = &openstackv1.GlanceSection{Template: glancev1.GlanceSpec{GlanceAPIs: map[string]glancev1.GlanceAPITemplate{"default": {Type: glancev1.LayoutSingle}}}}
	plane.Spec.Glance.Template.Storage.External = ptr.To(true)
	nova := MakeNova("nova", s.ns, "osp-secret", "cell1").Spec
	nova.CellTemplates["cell1"] = novav1.NovaCellTemplate{CellDatabaseInstance: "db", CellDatabaseUser: "nova"}
	plane.Spec.Nova = &openstackv1.NovaSection{Template: nova}
	inPods := s.inPods()
	inPods.Spec.CellName, inPods.Spec.ComputeDriver = "nova-cell1", "fake.FakeDriver"
	data := MakeDataPlane("plane", s.ns)
	data.Spec.Roles["compute"] = s.role("").Obj().Spec
	data.Spec.Nodes["n1"] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute"}
	s.make(password, MakeSecret("ssh-key", s.ns, "ssh-privatekey", "key"), plane, inPods, data)
}

var _ = Describe("A name that is generated", func() {
	var s stack
	BeforeEach(func() {
		s = stack{newWorld(func(o *controllers.Options) {
			o.Images.GlanceAPI, o.Images.NovaConductor = "glance:1", "conductor:1"
		})}
		startDatabases(s.ns)
	})

	It("causes a Conflict while an object of another owner has it, for each name", func() {
		rows := s.generated()
		before := map[string]map[string]any{}
		for _, row := range slices.Backward(rows) { // a role publishes its inventory at once, also that of a person
			s.make(row.Object)
			before[row.String()] = withoutStatus(row.Object)
		}
		s.deploy()
		var freed []generated
		for i, row := range rows {
			By(row.String())
			message := fmt.Sprintf("%s %q exists already and was not created for %s/%s: delete it if nothing needs it, or rename one of the two",
				kindOf(row.Object), row.GetName(), kindOf(row.by), row.by.GetName())
			s.condition(row.by, row.shows, "False/Conflict/Error", message)
			Expect(withoutStatus(get(Default, row.Object))).To(Equal(before[row.String()]), "it is not ours, and left as it was")
			Eventually(func() []string { return s.told(row.by) }).ShouldNot(BeEmpty(), "an event reports a conflict")
			Expect(len(slices.Compact(s.told(row.by)))).To(Equal(len(s.told(row.by))), "once for each condition")
			remove(row.Object)
			freed = append(freed, row)
			if slices.ContainsFunc(rows[i+1:], row.together) {
				continue
			}
			for _, made := range freed {
				Eventually(func(g Gomega) {
					g.Expect(metav1.IsControlledBy(get(g, made.Object), get(g, made.by))).To(BeTrue())
				}).Should(Succeed(), "%s is made once the name is free", made)
			}
			freed = nil
		}
		annotate(MakeRole("compute", s.ns).Obj(), novav1.CellAnnotation, "nova-cell1")
		s.computesReady("n1")
		Expect(s.unlisted(rows)).To(BeEmpty(), "each object that the operators make needs a row in generated, or a story that elsewhere names")
	})

	It("keeps an object of an earlier version without a write", func() {
		s.deploy()
		Eventually(func() error { return api.Get(ctx, metaKey(s.set("ironic")), s.set("ironic")) }).Should(Succeed())
		s.nodesReady("n1")
		s.quiet()
		s.running.end()
		for _, row := range s.generated() {
			Expect(api.Patch(ctx, row.Object, jsonPatch(`{"metadata":{"annotations":{"edpm.openstack.org/owner":null}}}`))).To(Succeed(), row.String())
		}
		s.running = startManager(s.ns, s.opts)
		s.quiet()
		Expect(s.wire.Since(0)).To(BeEmpty(), "an upgrade writes nothing")
	})
})

var _ = Describe("An object of another owner", func() {
	It("stays when the object that needed its name is deleted", func() {
		w := newCloud()
		theirs := MakeConfigMap("dataplanenode-n", w.ns, "theirs", "x")
		w.make(theirs, w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), condition.InputReadyCondition, common.ConflictReason, `ConfigMap "dataplanenode-n"`)
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(get(Default, theirs).Data).To(Equal(map[string]string{"theirs": "x"}))
	})

	It("stays even if it is the Secret that a Nova names, and one of its cells has that name", func() {
		w := newCloud()
		passwords := MakeSecret("osp-secret", w.ns, "NovaPassword", "p")
		nova := MakeNova("osp", w.ns, "osp-secret")
		nova.Spec.CellTemplates = map[string]novav1.NovaCellTemplate{"secret": {}}
		w.make(passwords, nova)
		w.halted(nova, novav1.NovaAllCellsReadyCondition, common.ConflictReason, `Secret "osp-secret"`)
		remove(nova)
		gone(nova)
		w.calm()
		kept := get(Default, MakeSecret("osp-secret", w.ns, "", ""))
		Expect(kept.OwnerReferences).To(BeEmpty())
		Expect(kept.Data).To(Equal(passwords.Data))
	})

	It("gets its owner back when it lost it, and was created for the same one", func() {
		w := newCloud()
		w.make(w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.nodesReady("n")
		inventory := MakeConfigMap("dataplanenode-n", w.ns, "", "")
		change(inventory, func(cm *k8scorev1.ConfigMap) { cm.OwnerReferences = nil })
		Eventually(func(g Gomega) bool { return metav1.IsControlledBy(get(g, inventory), get(g, w.node("n"))) }).Should(BeTrue())
		w.nodesReady("n")
		w.exactlyOnce()
	})
})

// withoutStatus is an object but for what the controller of its own kind writes,
// which looks after those of people as well.
func withoutStatus(obj client.Object) map[string]any {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	Expect(err).NotTo(HaveOccurred())
	delete(content, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "finalizers"} {
		delete(content["metadata"].(map[string]any), field)
	}
	return content
}

// told are the conditions of an object of which events report a conflict.
// Kubernetes may count those of several in one.
func (s stack) told(by judged) []string {
	GinkgoHelper()
	list := &k8scorev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(s.ns))).To(Succeed())
	var told []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == by.GetUID() && e.Reason == string(common.ConflictReason) {
			t, _, _ := strings.Cut(e.Message, ":")
			told = append(told, t)
		}
	}
	slices.Sort(told)
	return told
}

// unlisted are the objects in the namespace, of each kind that the manager may
// create, that neither a row nor elsewhere names, and that no one made by hand.
func (s stack) unlisted(rows []generated) []string {
	GinkgoHelper()
	known := slices.Clone(byHand)
	for _, row := range rows {
		known = append(known, row.String())
	}
	var unknown []string
	for _, gvk := range creatable() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		Expect(api.List(ctx, list, client.InNamespace(s.ns))).To(Succeed())
		for i := range list.Items {
			name := gvk.Kind + "/" + list.Items[i].Name
			if !slices.Contains(known, name) && !triedElsewhere(name) {
				unknown = append(unknown, name)
			}
		}
	}
	return unknown
}

func triedElsewhere(name string) bool {
	for pattern := range elsewhere {
		if regexp.MustCompile("^" + pattern + "$").MatchString(name) {
			return true
		}
	}
	return false
}

// creatable are the kinds that the manager has the right to create.
func creatable() []schema.GroupVersionKind {
	GinkgoHelper()
	roles := &rbacv1.ClusterRoleList{}
	Expect(api.List(ctx, roles)).To(Succeed())
	var kinds []schema.GroupVersionKind
	for _, role := range roles.Items {
		if !strings.HasPrefix(role.Name, "manager-") {
			continue
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Verbs, "create") {
				continue
			}
			for _, resource := range rule.Resources {
				gvk, err := api.RESTMapper().KindFor(schema.GroupVersionResource{Group: rule.APIGroups[0], Resource: resource})
				if err == nil && !strings.HasPrefix(gvk.Group, "auth") { // reviews are not stored
					kinds = append(kinds, gvk)
				}
			}
		}
	}
	Expect(len(kinds)).To(BeNumerically(">", 10), "the kinds that the manager creates: %v", kinds)
	return kinds
}
