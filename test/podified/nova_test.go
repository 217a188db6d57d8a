package podified_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	k8scorev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

const cellSecrets = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cell1"}, "stringData": {"ServicePassword": "p", "CellDatabasePassword": "d"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus"}, "stringData": {"transport_url": "rabbit://bus/"}}`

func cell(more string) string {
	return `apiVersion: nova.openstack.org/v1beta1
kind: NovaCell
metadata: {name: nova-cell1}
spec:
  cellName: cell1
  secret: cell1
  cellMessageBusSecretName: bus
  keystoneAuthURL: http://keystone.example:5000` + more
}

const database = "\n  cellDatabaseHostname: db.example\n  cellDatabaseUser: nova_cell1"

func (w world) cell() *novav1.NovaCell { return &novav1.NovaCell{ObjectMeta: w.meta("nova-cell1")} }

func (w world) compute() *novav1.NovaCompute {
	return &novav1.NovaCompute{ObjectMeta: w.meta("nova-cell1-fake")}
}

// config reads a file of a configuration.
func (w world) config(set, file string) string {
	GinkgoHelper()
	secret := &k8scorev1.Secret{ObjectMeta: w.meta(set + "-config-data")}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	return string(secret.Data[file])
}

var _ = Describe("A NovaCell", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		w.apply(cellSecrets)
	})

	It("without a database has no conductor, configures its computes, and is Ready", func() {
		w.apply(cell(""))
		ready(w.cell())
		shows(w.cell(), novav1.NovaConductorReadyCondition, "True/Ready/", "No conductor runs in this cell", "spec.cellDatabaseHostname")
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		Expect(w.pods()).To(BeEmpty())
	})

	It("with a database has a conductor that follows the nearest Topology", func() {
		w.apply(pin("of-cell", "zoneA") + "\n---\n" + pin("of-conductor", "zoneB"))
		w.apply(cell(database + `
  topologyRef: {name: of-cell}
  conductorServiceTemplate: {replicas: 2, customServiceConfig: "[DEFAULT]\ndebug = true\n"}`))
		ready(w.cell())
		Expect(w.pods()).To(ConsistOf("nova-cell1-conductor-0@zoneA", "nova-cell1-conductor-1@zoneA"))
		pod := w.pod("nova-cell1-conductor-0")
		Expect(pod.Labels).To(And(HaveKeyWithValue("service", "nova-conductor"), HaveKeyWithValue("cell", "cell1")))
		Expect(pod.Spec.Containers[0].Image).To(Equal("conductor:1"))
		Expect(w.config("nova-cell1-conductor", "01-nova.conf")).To(ContainSubstring("connection = mysql+pymysql://nova_cell1:d@db.example/nova_cell1"))
		Expect(w.config("nova-cell1-conductor", "02-nova-override.conf")).To(Equal("[DEFAULT]\ndebug = true\n"))
		Expect(get(Default, w.cell()).Status.Conductor.ReadyCount).To(BeEquivalentTo(2))

		change(w.cell(), func(c *novav1.NovaCell) {
			c.Spec.ConductorServiceTemplate.TopologyRef = &topologyv1.TopologyRef{Name: "of-conductor"}
		})
		Eventually(w.pods).Should(ConsistOf("nova-cell1-conductor-0@zoneB", "nova-cell1-conductor-1@zoneB"))
		ready(w.cell())
		Expect(get(Default, w.topology("of-cell")).Finalizers).To(BeEmpty())
		quiet()

		By("taking the database away")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.CellDatabaseHostname = "" })
		Eventually(w.pods).Should(BeEmpty())
		ready(w.cell())
		Expect(get(Default, w.topology("of-conductor")).Finalizers).To(BeEmpty())
		Expect(get(Default, w.cell()).Status.Conductor).To(BeNil())
	})

	It("whose conductor is not up configures its computes all the same", func() {
		w.apply(cell(database + "\n  conductorServiceTemplate: {nodeSelector: {no: where}}"))
		shows(w.cell(), condition.DeploymentReadyCondition, "False/PodsPending/Warning", "didn't match Pod's node affinity/selector")
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		Expect(get(Default, w.cell()).IsReady()).To(BeFalse())
	})

	It("says which password its conductor lacks", func() {
		w.apply(cell(database + "\n  apiDatabaseHostname: api.example"))
		shows(w.cell(), novav1.NovaConductorReadyCondition, "False/SecretKeyMissing/Warning", `"cell1"`, `"APIDatabasePassword"`)
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
	})
})

var _ = Describe("A Nova", func() {
	It("of a control plane hands its Topology to cells whose databases it has the password of", func() {
		w := newWorld()
		w.apply(pin("plane", "zoneC") + "\n---\n" + `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus"}, "stringData": {"transport_url": "rabbit://bus/"}}
---
apiVersion: core.openstack.org/v1beta1
kind: OpenStackControlPlane
metadata: {name: openstack}
spec:
  secret: osp-secret
  topologyRef: {name: plane}
  nova:
    template:
      keystoneAuthURL: http://keystone.example:5000
      cellTemplates:
        cell1: {cellDatabaseInstance: openstack-cell1, cellDatabaseUser: nova_cell1, cellMessageBusSecretName: bus}
        cell2: {topologyRef: {}, cellMessageBusSecretName: bus}`)
		ready(&novav1.Nova{ObjectMeta: w.meta("nova")})
		Expect(w.pods()).To(And(HaveLen(2), ContainElement("nova-cell1-conductor-0@zoneC")))
		Expect(w.config("nova-cell1-conductor", "01-nova.conf")).To(ContainSubstring("@openstack-cell1." + string(w) + ".svc/nova_cell1"))
		Expect(w.pod("nova-cell2-conductor-0").Spec.Affinity.NodeAffinity).To(BeNil())
		Expect(get(Default, w.topology("plane")).Finalizers).To(ConsistOf("openstack.org/novacell-nova-cell1"))
	})
})

var _ = Describe("A NovaCompute", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		w.apply(cellSecrets)
	})
	compute := func(more string) string {
		return "apiVersion: nova.openstack.org/v1beta1\nkind: NovaCompute\nmetadata: {name: nova-cell1-fake}\nspec:\n  cellName: nova-cell1\n  computeDriver: fake.FakeDriver" + more
	}

	It("waits for its cell, follows the Topology of the cell when that comes, and can opt out", func() {
		w.apply(compute("\n  replicas: 2"))
		shows(w.compute(), novav1.NovaCellReadyCondition, "False/NovaCellMissing/Warning", `"nova-cell1"`, "create it")
		w.apply(cell("\n  topologyRef: {name: of-cell}"))
		shows(w.compute(), condition.TopologyReadyCondition, "False/TopologyMissing/Warning", `"of-cell"`)
		w.apply(pin("of-cell", "zoneB"))
		Eventually(w.pods).Should(ConsistOf("nova-cell1-fake-0@zoneB", "nova-cell1-fake-1@zoneB"))
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		Expect(w.config("nova-cell1-fake", "01-nova.conf")).To(And(ContainSubstring("transport_url = rabbit://bus/"), HaveSuffix("[DEFAULT]\ncompute_driver = fake.FakeDriver\nlog_file =\nlog_rotation_type = none\n")))
		Expect(w.pod("nova-cell1-fake-0").Labels).To(And(HaveKeyWithValue("service", "nova-compute"), HaveKeyWithValue("cell", "cell1")))

		By("editing the Topology of the cell")
		w.apply(pin("of-cell", "zoneC"))
		Eventually(w.pods).Should(ConsistOf("nova-cell1-fake-0@zoneC", "nova-cell1-fake-1@zoneC"))

		By("opting out")
		change(w.compute(), func(c *novav1.NovaCompute) { c.Spec.TopologyRef = &topologyv1.TopologyRef{} })
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.set("nova-cell1-fake")).Spec.Template.Spec.Affinity.NodeAffinity).To(BeNil())
		}).Should(Succeed())
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		quiet()
	})

	It("is again when the message bus of its cell changes", func() {
		w.apply(cell("") + "\n---\n" + compute(""))
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		before := w.births()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus"}, "stringData": {"transport_url": "rabbit://elsewhere/"}}`)
		Eventually(w.births).Should(And(HaveLen(1), Not(Equal(before))))
	})

	It("goes with what it made, and lets go of its Topology", func() {
		w.apply(pin("t", "zoneA") + "\n---\n" + cell("") + "\n---\n" + compute("\n  topologyRef: {name: t}"))
		shows(w.compute(), topologyv1.PlacementReadyCondition, "True/Ready/")
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		Expect(api.Delete(ctx, w.compute())).To(Succeed())
		Eventually(w.pods).Should(BeEmpty())
		Expect(get(Default, w.topology("t")).Finalizers).To(BeEmpty())
		Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(w.compute()), w.compute()))).To(BeTrue())
	})
})

var _ = Describe("A cell that a Nova no longer describes", func() {
	It("stays while it has a podified compute, and then goes", func() {
		w := newWorld()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus"}, "stringData": {"transport_url": "rabbit://bus/"}}
---
apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: http://keystone.example:5000
  cellTemplates:
    cell1: {cellMessageBusSecretName: bus}
---
apiVersion: nova.openstack.org/v1beta1
kind: NovaCompute
metadata: {name: nova-cell1-fake}
spec: {cellName: nova-cell1, computeDriver: fake.FakeDriver}`)
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		nova := &novav1.Nova{ObjectMeta: w.meta("nova")}
		change(nova, func(n *novav1.Nova) {
			n.Spec.CellTemplates = map[string]novav1.NovaCellTemplate{"cell2": {CellMessageBusSecretName: "bus"}}
		})
		shows(nova, novav1.NovaAllCellsReadyCondition, "False/ComputesRemaining/Error", "NovaCell nova-cell1 has 1 computes")
		get(Default, w.cell())
		Expect(api.Delete(ctx, w.compute())).To(Succeed())
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(w.cell()), w.cell()) }).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})
})
