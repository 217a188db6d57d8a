package podified_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	k8scorev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
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

	It("runs no conductor without a database, configures its computes, and is Ready", func() {
		w.apply(cell(""))
		ready(w.cell())
		shows(w.cell(), novav1.NovaConductorReadyCondition, "True/Ready/", "No conductor runs in this cell", "spec.cellDatabaseHostname")
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		Expect(w.pods()).To(BeEmpty())
	})

	It("runs a conductor with a database, which follows the nearest Topology", func() {
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
		Expect(get(Default, w.cell()).Status.Conductor.LastAppliedTopology).To(HaveValue(HaveField("Name", "of-conductor")))
		Eventually(w.users).WithArguments("of-cell").Should(ConsistOf("NovaCell/nova-cell1"), "its other services would follow it")
		quiet()

		By("running no conductor, which others may do")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.ConductorServiceTemplate.Replicas = ptr.To[int32](0) })
		Eventually(w.pods).Should(BeEmpty())
		ready(w.cell())
		Eventually(w.users).WithArguments("of-conductor").Should(ConsistOf("NovaCell/nova-cell1"), "it still refers to it")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.ConductorServiceTemplate.Replicas = nil })
		Eventually(w.pods).Should(HaveLen(1))
		ready(w.cell())

		By("taking the database away")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.CellDatabaseHostname = "" })
		Eventually(w.pods).Should(BeEmpty())
		ready(w.cell())
		Eventually(w.users).WithArguments("of-conductor").Should(ConsistOf("NovaCell/nova-cell1"), "it still refers to it")
		Expect(get(Default, w.cell()).Status.Conductor).To(BeNil())
	})

	It("configures its computes even if its conductor is not up", func() {
		w.apply(cell(database + "\n  conductorServiceTemplate: {nodeSelector: {no: where}}"))
		shows(w.cell(), condition.DBSyncReadyCondition, "False/PodsPending/Warning", "didn't match Pod's node affinity/selector")
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		Expect(get(Default, w.cell()).IsReady()).To(BeFalse())
	})

	It("says which container of its conductor does not stay up and where its log is, until it runs", func() {
		cluster.crash(func(*k8scorev1.Pod) string { return "hunter2" })
		w.apply(cell(database))
		shows(w.cell(), condition.DeploymentReadyCondition, "False/PodsNotReady/Info",
			"container nova-conductor of pod nova-cell1-conductor-0 has ended with exit code 3: kubectl logs --namespace "+string(w)+" --previous --container nova-conductor nova-cell1-conductor-0")
		Expect(fmt.Sprint(get(Default, w.cell()).Status)).NotTo(ContainSubstring("hunter2"))
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		quiet()
		cluster.crash(nil)
		ready(w.cell())
	})

	It("names the image that does not have the program of an endpoint, until it has another one", func() {
		const old, corrected = "registry.example/nova:old", "registry.example/nova:corrected"
		cluster.crash(func(pod *k8scorev1.Pod) string {
			if pod.Spec.Containers[0].Image == old {
				return "ProgramMissing"
			}
			return ""
		})
		w.apply(w.secret("cell1", "MetadataSecret", "m"))
		w.apply(cell(database + "\n  metadataServiceTemplate: {replicas: 1, containerImage: " + old + "}"))
		shows(w.cell(), condition.DeploymentReadyCondition, "False/ProgramMissing/Warning", "pod nova-cell1-metadata-0, image "+old, "no program nova-api-metadata",
			"nova.wsgi.metadata:application, and uwsgi or httpd", "spec.metadataServiceTemplate.containerImage")
		quiet()
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.MetadataServiceTemplate.ContainerImage = corrected })
		ready(w.cell())
	})

	It("says which password its conductor lacks", func() {
		w.apply(cell(database + "\n  apiDatabaseHostname: api.example"))
		shows(w.cell(), novav1.NovaConductorReadyCondition, "False/SecretKeyMissing/Warning", `"cell1"`, `"APIDatabasePassword"`)
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
	})
})

var _ = Describe("A Nova", func() {
	It("passes the Topology of its control plane to cells whose databases it has the password of", func() {
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
        cell2: {topologyRef: {}, cellDatabaseInstance: db.example.org, cellMessageBusSecretName: bus}`)
		ready(&novav1.Nova{ObjectMeta: w.meta("nova")})
		Expect(w.pods()).To(And(HaveLen(2), ContainElement("nova-cell1-conductor-0@zoneC")))
		Expect(w.config("nova-cell1-conductor", "01-nova.conf")).To(ContainSubstring("@openstack-cell1." + string(w) + ".svc/nova_cell1"))
		Expect(w.config("nova-cell2-conductor", "01-nova.conf")).To(ContainSubstring("@db.example.org/nova_cell2"))
		Expect(w.pod("nova-cell2-conductor-0").Spec.Affinity.NodeAffinity).To(BeNil())
		Eventually(w.users).WithArguments("plane").Should(ConsistOf("Nova/nova", "NovaCell/nova-cell1"))
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

	It("trusts the authorities of the bundle of its cell, and replaces the pods when it changes", func() {
		w.apply(cell("\n  caBundleSecretName: bundle\n  keystone: {caFile: /of/hosts}") + "\n---\n" +
			"apiVersion: nova.openstack.org/v1beta1\nkind: NovaCompute\nmetadata: {name: nova-cell1-ironic}\nspec: {cellName: nova-cell1}")
		w.apply(w.secret("bundle", "tls-ca-bundle.pem", "one"))
		compute := &novav1.NovaCompute{ObjectMeta: w.meta("nova-cell1-ironic")}
		ready(compute)
		Expect(w.config("nova-cell1-ironic", "tls-ca-bundle.pem")).To(Equal("one"))
		config, err := oslo.Parse(w.config("nova-cell1-ironic", "01-nova.conf"))
		Expect(err).NotTo(HaveOccurred())
		for _, section := range config.Sections() {
			for _, option := range []string{"cafile", "verify_ssl_path"} {
				if values := config.Get(section.Name, option); len(values) > 0 {
					Expect(values[len(values)-1]).To(Equal("/etc/nova/nova.conf.d/tls-ca-bundle.pem"), section.Name)
				}
			}
		}
		Expect(config.Get("ironic", "cafile")).NotTo(BeEmpty())
		Expect(w.pod("nova-cell1-ironic-0").Spec.Containers[0].VolumeMounts).To(ContainElement(
			k8scorev1.VolumeMount{Name: "config-data", MountPath: "/etc/ssl/certs/ca-certificates.crt", SubPath: "tls-ca-bundle.pem", ReadOnly: true}))

		By("renewing it")
		births := w.births()
		w.apply(w.secret("bundle", "tls-ca-bundle.pem", "two"))
		Eventually(func() string { return w.births()["nova-cell1-ironic-0"] }).ShouldNot(Equal(births["nova-cell1-ironic-0"]))
		Expect(w.config("nova-cell1-ironic", "tls-ca-bundle.pem")).To(Equal("two"))
		ready(compute)
		quiet()
	})

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

	It("replaces its pods when the message bus of its cell changes", func() {
		w.apply(cell("") + "\n---\n" + compute(""))
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		before := w.births()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus"}, "stringData": {"transport_url": "rabbit://elsewhere/"}}`)
		Eventually(w.births).Should(And(HaveLen(1), Not(Equal(before))))
	})

	It("reads its Secrets last, and replaces its pods when one changes", func() {
		w.apply(cell("") + "\n---\n" + compute("\n  customServiceConfigSecrets: [more]"))
		shows(w.compute(), condition.InputReadyCondition, "False/SecretMissing/Warning", `"more"`)
		w.apply(w.secret("more", "a", "[api]\nx = one\n"))
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		Expect(w.config("nova-cell1-fake", "03-nova-secrets.conf")).To(Equal("[api]\nx = one\n\n"))
		before := w.births()
		w.apply(w.secret("more", "a", "[api]\nx = two\n"))
		Eventually(w.births).Should(And(HaveLen(1), Not(Equal(before))))
	})

	It("reads definitions of providers in a directory of their own, and replaces its pods when one changes", func() {
		w.apply(cell("") + "\n---\n" + compute("\n  defaultConfigOverwrite: {provider-a.yaml: 'meta: {schema_version: \"1.0\"}', policy.yaml: 'a: b'}"))
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		pod := w.pod("nova-cell1-fake-0").Spec
		Expect(pod.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", "/etc/nova/provider_config")))
		Expect(pod.Volumes).To(ContainElement(And(HaveField("Name", "provider-config"), HaveField("Secret.Items", ConsistOf(k8scorev1.KeyToPath{Key: "provider-a.yaml", Path: "provider-a.yaml"})))))
		before := w.births()
		w.apply(compute("\n  defaultConfigOverwrite: {provider-a.yaml: 'meta: {schema_version: \"1.0\"} # again'}"))
		Eventually(w.births).Should(And(HaveLen(1), Not(Equal(before))))
		Expect(w.config("nova-cell1-fake", "provider-a.yaml")).To(Equal(`meta: {schema_version: "1.0"} # again`))
	})

	It("deletes what it created, and releases its Topology", func() {
		w.apply(pin("t", "zoneA") + "\n---\n" + cell("") + "\n---\n" + compute("\n  topologyRef: {name: t}"))
		shows(w.compute(), topologyv1.PlacementReadyCondition, "True/Ready/")
		shows(w.compute(), condition.ReadyCondition, "True/Ready/")
		Expect(api.Delete(ctx, w.compute())).To(Succeed())
		Eventually(w.pods).Should(BeEmpty())
		Eventually(w.users).WithArguments("t").Should(BeEmpty())
		Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(w.compute()), w.compute()))).To(BeTrue())
	})
})

var _ = Describe("A cell that a Nova no longer describes", func() {
	It("stays while it has a podified compute, and is then deleted", func() {
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

// fail lets pods of Jobs fail with a termination message, until the story ends.
func (k *kubernetes) failJobs(fails func(*k8scorev1.Pod) string) {
	set := func(f func(*k8scorev1.Pod) string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fails = f
	}
	set(fails)
	DeferCleanup(set, (func(*k8scorev1.Pod) string)(nil))
}

// leave has Jobs that succeed leave a message, until the story ends.
func (k *kubernetes) leave(leaves func(*k8scorev1.Pod) string) {
	set := func(f func(*k8scorev1.Pod) string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.leaves = f
	}
	set(leaves)
	DeferCleanup(set, (func(*k8scorev1.Pod) string)(nil))
}

// crash lets containers of services fail, until the story ends.
func (k *kubernetes) crash(crashes func(*k8scorev1.Pod) string) {
	set := func(f func(*k8scorev1.Pod) string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.crashes = f
	}
	set(crashes)
	DeferCleanup(set, (func(*k8scorev1.Pod) string)(nil))
}

// jobs are the Jobs of the namespace, by name without hash, with whether they have succeeded.
func (w world) jobs() map[string]bool {
	list := &batchv1.JobList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	out := map[string]bool{}
	for _, job := range list.Items {
		name := job.Annotations["edpm.openstack.org/job"]
		Expect(out).NotTo(HaveKey(name), "two Jobs of one name are there at once")
		out[name] = job.Status.Succeeded > 0
	}
	return out
}

// ran are the Jobs that were created since a mark, by name without hash and in order.
func (w world) ran(mark int) []string {
	var names []string
	for _, write := range wire.Since(mark, "PATCH", "/namespaces/"+string(w)+"/jobs/") {
		name := write[strings.LastIndex(write, "/")+1:]
		names = append(names, name[:strings.LastIndex(name, "-")])
	}
	return names
}

func (w world) secret(name, key, value string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": %q}, "stringData": {%q: %q}}`, name, key, value)
}

var _ = Describe("The database of a NovaCell", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		w.apply(cellSecrets)
	})

	It("gets its schema before the conductor runs, once for each content of its inputs", func() {
		mark := wire.Mark()
		w.apply(cell(database))
		ready(w.cell())
		shows(w.cell(), condition.DBSyncReadyCondition, "True/Ready/", "nova_cell1")
		Expect(w.jobs()).To(Equal(map[string]bool{"nova-cell1-db-sync": true}))
		Expect(w.ran(mark)).To(Equal([]string{"nova-cell1-db-sync"}))
		Expect(w.pod("nova-cell1-conductor-0").Spec.InitContainers).To(BeEmpty())

		By("deleting the Job, as Kubernetes does in the end")
		Expect(api.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(string(w)), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(w.jobs).Should(BeEmpty())
		quiet()
		Expect(w.ran(mark)).To(HaveLen(1))

		By("changing a password")
		w.apply(w.secret("cell1", "CellDatabasePassword", "d2"))
		Eventually(w.jobs).Should(Equal(map[string]bool{"nova-cell1-db-sync": true}))
		ready(w.cell())
		quiet()
		Expect(w.ran(mark)).To(HaveLen(2))
	})

	It("shows in a condition, without its password, when it denies access, and the correct password runs another Job", func() {
		cluster.failJobs(func(pod *k8scorev1.Pod) string { return "DatabaseAccessDenied" })
		w.apply(w.secret("cell1", "CellDatabasePassword", "wrong-password"))
		w.apply(cell(database))
		shows(w.cell(), condition.DBSyncReadyCondition, "False/DatabaseAccessDenied/Warning", "database nova_cell1 on db.example", "correct the user or its password", "kubectl logs job/nova-cell1-db-sync-")
		Expect(fmt.Sprint(get(Default, w.cell()).Status)).NotTo(ContainSubstring("wrong-password"))
		Expect(get(Default, w.cell()).ConfiguresComputes()).To(BeTrue())
		Consistently(w.pods).Should(BeEmpty(), "the conductor has no schema")

		cluster.failJobs(nil)
		w.apply(w.secret("cell1", "CellDatabasePassword", "d"))
		ready(w.cell())
		Expect(w.jobs()).To(Equal(map[string]bool{"nova-cell1-db-sync": true}))
	})

	It("shows nothing of a text that its Job leaves", func() {
		cluster.failJobs(func(*k8scorev1.Pod) string { return "hunter2" })
		w.apply(cell(database))
		shows(w.cell(), condition.DBSyncReadyCondition, "False/JobFailing/Warning", "its command fails")
		Expect(fmt.Sprint(get(Default, w.cell()).Status)).NotTo(ContainSubstring("hunter2"))
	})

	It("takes its Job and all services along when the spec no longer has it", func() {
		cluster.failJobs(func(*k8scorev1.Pod) string { return "DatabaseUnreachable" })
		w.apply(cell(database))
		shows(w.cell(), condition.DBSyncReadyCondition, "False/DatabaseUnreachable/Warning", "does not answer")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.CellDatabaseHostname = "" })
		Eventually(w.jobs).Should(BeEmpty())
		ready(w.cell())
	})

	It("serves the metadata service and the console proxy where they are wanted, with TLS", func() {
		w.apply(w.secret("cell1", "MetadataSecret", "m") + "\n---\n" +
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert"}, "stringData": {"tls.crt": "c", "tls.key": "k"}}`)
		w.apply(cell(database + `
  metadataServiceTemplate: {replicas: 1, tls: {secretName: cert}}
  noVNCProxyServiceTemplate: {replicas: 2, customServiceConfig: "[vnc]\nnovncproxy_port = 6080\n"}`))
		ready(w.cell())
		Expect(w.births()).To(And(HaveLen(4), HaveKey("nova-cell1-metadata-0"), HaveKey("nova-cell1-novncproxy-1"), HaveKey("nova-cell1-conductor-0")))
		Expect(w.config("nova-cell1-metadata", "01-nova.conf")).To(And(ContainSubstring("metadata_proxy_shared_secret = m"), Not(ContainSubstring("ssl_cert_file"))))
		Expect(w.config("nova-cell1-metadata", "program.ini")).To(ContainSubstring("ssl_cert_file = /etc/nova/nova.conf.d/tls.crt"), "not all releases have it")
		Expect(w.config("nova-cell1-metadata", "tls.key")).To(Equal("k"))
		Expect(w.config("nova-cell1-conductor", "01-nova.conf")).NotTo(ContainSubstring("metadata_proxy_shared_secret"))
		Expect(w.pod("nova-cell1-metadata-0").Spec.Containers[0].ReadinessProbe.HTTPGet.Scheme).To(Equal(k8scorev1.URISchemeHTTPS))
		Expect(get(Default, w.cell()).Status.NoVNCProxy.ReadyCount).To(BeEquivalentTo(2))

		By("renewing the certificate")
		before := w.births()
		w.apply(w.secret("cert", "tls.crt", "c2"))
		Eventually(func() string { return w.births()["nova-cell1-metadata-0"] }).ShouldNot(Equal(before["nova-cell1-metadata-0"]))
		ready(w.cell())
		Expect(w.births()).To(HaveKeyWithValue("nova-cell1-conductor-0", before["nova-cell1-conductor-0"]))

		By("draining: one pod of each service may be unavailable")
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: w.meta("nova-cell1-novncproxy")}
		Expect(get(Default, budget).Spec.MaxUnavailable.IntValue()).To(Equal(1))
		Expect(budget.Spec.Selector.MatchLabels).To(Equal(map[string]string{"service": "nova-novncproxy", "owner": "nova-cell1"}))

		By("running no console proxy")
		change(w.cell(), func(c *novav1.NovaCell) { c.Spec.NoVNCProxyServiceTemplate.Replicas = nil })
		Eventually(w.births).Should(HaveLen(2))
		Eventually(func() bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(budget), budget)) &&
				apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(budget), &k8scorev1.Service{}))
		}).Should(BeTrue())
		ready(w.cell())
		Expect(get(Default, w.cell()).Status.NoVNCProxy).To(BeNil())
		quiet()
	})
})

var _ = Describe("A Nova with databases", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d", "NovaAPIDatabasePassword": "a"}}`)
		for _, bus := range []string{"bus0", "bus1"} {
			w.apply(w.secret(bus, "transport_url", "rabbit://"+bus+"/"))
		}
	})
	const oneAPI = "\n  apiServiceTemplate: {replicas: 1}"
	describe := func(name, more string) string {
		return `apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: ` + name + `}
spec:
  secret: osp-secret
  keystoneAuthURL: http://keystone.example:5000
  apiDatabaseName: ` + name + `_api
  cellTemplates:
    cell0: {cellMessageBusSecretName: bus0, hasAPIAccess: true, cellDatabaseName: ` + name + `_cell0}
    cell1: {cellMessageBusSecretName: bus1, cellDatabaseName: ` + name + `_cell1}` + more
	}
	nova := func() *novav1.Nova { return &novav1.Nova{ObjectMeta: w.meta("nova")} }

	It("has all its services notify others, and those in pods use memcached, where it names them", func() {
		w.apply(describe("nova", oneAPI+"\n  memcachedServers: [\"memcached-0.memcached:11211\", \"[fd00::1]:11211\"]\n  notificationsBusSecretName: notifications"))
		cell := &novav1.NovaCell{ObjectMeta: w.meta("nova-cell1")}
		shows(cell, condition.InputReadyCondition, "False/SecretMissing/Warning", `"notifications"`)
		shows(nova(), novav1.NovaAPIReadyCondition, "False/SecretMissing/Warning", `"notifications"`)
		w.apply(w.secret("notifications", "transport_url", "rabbit://n:p@elsewhere/\n"))
		ready(nova())
		const notifies = "driver = messagingv2\ntransport_url = rabbit://n:p@elsewhere/\n"
		for _, name := range []string{"nova-api", "nova-cell1-conductor"} {
			Expect(w.config(name, "01-nova.conf")).To(And(ContainSubstring(notifies), ContainSubstring("memcached_servers = memcached-0.memcached:11211,[fd00::1]:11211\n")), name)
		}
		computes := string(get(Default, &k8scorev1.Secret{ObjectMeta: w.meta("nova-cell1-compute-config")}).Data["01-nova.conf"])
		Expect(computes).To(And(ContainSubstring(notifies), Not(ContainSubstring("memcached_servers"))))
		quiet()

		By("the Secret saying what queues are there, which are not those of the cells")
		w.apply(w.secret("notifications", "quorumqueues", "perhaps"))
		shows(cell, condition.InputReadyCondition, "False/InvalidServiceConfig/Error", "Secret notifications", "quorumqueues is neither true nor false: correct or remove it")
		shows(nova(), novav1.NovaAPIReadyCondition, "False/InvalidServiceConfig/Error", "Secret notifications", "quorumqueues")
		w.apply(w.secret("notifications", "quorumqueues", "false"))
		ready(nova())
		const classic = "transport_url = rabbit://n:p@elsewhere/?amqp_durable_queues=false&rabbit_quorum_queue=false&rabbit_transient_quorum_queue=false\n"
		for _, name := range []string{"nova-api", "nova-cell1-conductor"} {
			Expect(w.config(name, "01-nova.conf")).To(And(ContainSubstring(classic), ContainSubstring("\nrabbit_quorum_queue = true\n")), name)
		}
		Expect(string(get(Default, &k8scorev1.Secret{ObjectMeta: w.meta("nova-cell1-compute-config")}).Data["01-nova.conf"])).To(ContainSubstring(classic))
	})

	It("has each service read its Secrets last, names one that is missing, and replaces the pods when one changes", func() {
		const more = "customServiceConfigSecrets: [more]"
		change(&k8scorev1.Secret{ObjectMeta: w.meta("osp-secret")}, func(s *k8scorev1.Secret) { s.Data["MetadataSecret"] = []byte("m") })
		w.apply(describe("nova", `
  schedulerServiceTemplate: {`+more+`}
  apiServiceTemplate: {replicas: 1, `+more+`}`))
		change(nova(), func(n *novav1.Nova) {
			t, service := n.Spec.CellTemplates["cell1"], novav1.NovaServiceTemplate{Replicas: ptr.To[int32](1), CustomServiceConfigSecrets: []string{"more"}}
			t.ConductorServiceTemplate.NovaServiceTemplate, t.MetadataServiceTemplate.NovaServiceTemplate, t.NoVNCProxyServiceTemplate.NovaServiceTemplate = service, service, service
			n.Spec.CellTemplates["cell1"] = t
		})
		cell := &novav1.NovaCell{ObjectMeta: w.meta("nova-cell1")}
		shows(nova(), condition.InputReadyCondition, "False/SecretMissing/Warning", `spec.apiServiceTemplate.customServiceConfigSecrets: Secret "more" does not exist`)
		shows(cell, condition.InputReadyCondition, "False/SecretMissing/Warning", `spec.conductorServiceTemplate.customServiceConfigSecrets: Secret "more" does not exist`)
		w.apply(w.secret("more", "a", "[DEFAULT]\nhost = x\n"))
		shows(cell, condition.ServiceConfigReadyCondition, "False/InvalidServiceConfig/Error", `spec.conductorServiceTemplate.customServiceConfigSecrets: Secret "more", key "a": line 2: [DEFAULT] host`)
		w.apply(w.secret("more", "a", "[api]\nx = one\n"))
		services := []string{"nova-api", "nova-scheduler", "nova-cell1-conductor", "nova-cell1-metadata", "nova-cell1-novncproxy"}
		ready(nova())
		for _, name := range append(services, "nova-api-db-sync", "nova-cell1-db-sync") {
			Expect(w.config(name, "03-nova-secrets.conf")).To(Equal("[api]\nx = one\n\n"), name)
		}
		Expect(w.config("nova-cell0-conductor", "03-nova-secrets.conf")).To(BeEmpty())
		births := w.births()
		w.apply(w.secret("more", "a", "[api]\nx = two\n"))
		for _, name := range services {
			Eventually(func() string { return w.births()[name+"-0"] }).ShouldNot(Equal(births[name+"-0"]), name)
		}
		ready(nova())
		Expect(w.births()).To(HaveKeyWithValue("nova-cell0-conductor-0", births["nova-cell0-conductor-0"]))
		quiet()
	})

	It("gives each service the further files that it reads, and replaces the pods of no other when one changes", func() {
		change(&k8scorev1.Secret{ObjectMeta: w.meta("osp-secret")}, func(s *k8scorev1.Secret) { s.Data["MetadataSecret"] = []byte("m") })
		w.apply(describe("nova", `
  schedulerServiceTemplate: {replicas: 1}
  apiServiceTemplate:
    replicas: 1
    defaultConfigOverwrite: {api-paste.ini: "[composite:osapi_compute]\nuse = a\n"}
    configFiles: [{name: policy.yaml, configMap: {name: policies}}]`))
		change(nova(), func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.MetadataServiceTemplate.Replicas = ptr.To[int32](1)
			t.MetadataServiceTemplate.ConfigFiles = []common.ConfigFile{{Name: "vendor_data.json", Secret: &common.FileSource{Name: "vendor", Key: "data"}}}
			n.Spec.CellTemplates["cell1"] = t
		})
		cell := &novav1.NovaCell{ObjectMeta: w.meta("nova-cell1")}
		shows(nova(), condition.ServiceConfigReadyCondition, "False/ConfigMapMissing/Warning", `spec.apiServiceTemplate.configFiles[policy.yaml]: ConfigMap "policies", key "policy.yaml": ConfigMap "policies" does not exist`)
		shows(cell, condition.ServiceConfigReadyCondition, "False/SecretMissing/Warning", `spec.metadataServiceTemplate.configFiles[vendor_data.json]: Secret "vendor", key "data": Secret "vendor" does not exist`)
		w.apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policies"}, "data": {"policy.yaml": "- a\n"}}` + "\n---\n" + w.secret("vendor", "data", "[1]"))
		shows(nova(), condition.ServiceConfigReadyCondition, "False/InvalidServiceConfig/Error", `ConfigMap "policies", key "policy.yaml": line 1: is a list, not a mapping`)
		w.apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policies"}, "data": {"policy.yaml": "a: b\n"}}`)
		ready(nova())
		Expect(w.config("nova-api", "policy.yaml")).To(Equal("a: b\n"))
		Expect(w.config("nova-api", "api-paste.ini")).To(HavePrefix("[composite:"))
		Expect(w.config("nova-cell1-metadata", "vendor_data.json")).To(Equal("[1]"))
		Expect(w.config("nova-cell1-metadata", "01-nova-files.conf")).To(Equal("[api]\nvendordata_jsonfile_path = /etc/nova/nova.conf.d/vendor_data.json\n"))
		Expect(w.config("nova-scheduler", "policy.yaml") + w.config("nova-api", "01-nova-files.conf")).To(BeEmpty())

		By("a change of the ConfigMap, and then of the Secret")
		changed := func(service string, change func()) {
			GinkgoHelper()
			before := w.births()
			change()
			Eventually(func() string { return w.births()[service+"-0"] }).ShouldNot(Or(Equal(before[service+"-0"]), BeEmpty()))
			ready(nova())
			quiet()
			after := w.births()
			delete(before, service+"-0")
			delete(after, service+"-0")
			Expect(after).To(Equal(before))
		}
		changed("nova-api", func() {
			w.apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policies"}, "data": {"policy.yaml": "a: c\n"}}`)
		})
		changed("nova-cell1-metadata", func() { w.apply(w.secret("vendor", "data", "[2]")) })
		Expect(w.config("nova-cell1-metadata", "vendor_data.json")).To(Equal("[2]"))
	})

	It("has its pods and Jobs trust the authorities of a bundle, also for its databases, and replaces the pods when it changes", func() {
		w.apply(describe("nova", oneAPI+"\n  databaseTLS: true"))
		shows(nova(), novav1.NovaAPIReadyCondition, "False/InvalidSpec/Error", "spec.databaseTLS", "spec.caBundleSecretName")
		change(nova(), func(n *novav1.Nova) { n.Spec.CABundleSecretName = "bundle" })
		shows(nova(), novav1.NovaAPIReadyCondition, "False/SecretMissing/Warning", `"bundle"`)
		w.apply(w.secret("bundle", "tls-ca-bundle.pem", "one"))
		ready(nova())
		for _, name := range []string{"nova-api", "nova-scheduler", "nova-cell0-conductor", "nova-cell1-conductor", "nova-api-db-sync", "nova-cell1-db-sync", "nova-cell1-mapping", "nova-cell1-db-purge"} {
			Expect(w.config(name, "tls-ca-bundle.pem")).To(Equal("one"), name)
			Expect(w.config(name, "01-nova.conf")).To(And(
				MatchRegexp(`\nconnection = .*/nova_cell\d\?charset=utf8&ssl_ca=/etc/nova/nova.conf.d/tls-ca-bundle.pem\n`), ContainSubstring("\ncafile = /etc/nova/nova.conf.d/tls-ca-bundle.pem\n")), name)
		}
		var jobs batchv1.JobList
		Expect(api.List(ctx, &jobs, client.InNamespace(string(w)))).To(Succeed())
		containers := []k8scorev1.Container{w.pod("nova-api-0").Spec.Containers[0], w.pod("nova-cell1-conductor-0").Spec.Containers[0]}
		for _, job := range jobs.Items {
			containers = append(containers, job.Spec.Template.Spec.Containers[0])
		}
		for _, container := range containers {
			for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"} {
				Expect(container.VolumeMounts).To(ContainElement(k8scorev1.VolumeMount{Name: "config-data", MountPath: path, SubPath: "tls-ca-bundle.pem", ReadOnly: true}), container.Name)
			}
		}
		computes := get(Default, &k8scorev1.Secret{ObjectMeta: w.meta("nova-cell1-compute-config")}).Data
		Expect(string(computes["01-nova.conf"])).NotTo(ContainSubstring("cafile"), "hosts have their own")

		By("renewing it")
		births := w.births()
		w.apply(w.secret("bundle", "tls-ca-bundle.pem", "two"))
		for _, pod := range []string{"nova-api-0", "nova-scheduler-0", "nova-cell1-conductor-0"} {
			Eventually(func() string { return w.births()[pod] }).ShouldNot(Equal(births[pod]), pod)
		}
		ready(nova())
		Expect(get(Default, &k8scorev1.Secret{ObjectMeta: w.meta("nova-cell1-compute-config")}).Data).To(Equal(computes))
		quiet()
	})

	It("runs an API and a scheduler once its databases and cells are prepared, in order", func() {
		mark := wire.Mark()
		w.apply(pin("t", "zoneB"))
		w.apply(describe("nova", `
  topologyRef: {name: t}
  apiServiceTemplate: {replicas: 2, customServiceConfig: "[DEFAULT]\ndebug = true\n"}`))
		ready(nova())
		Expect(w.pods()).To(ConsistOf("nova-api-0@zoneB", "nova-api-1@zoneB", "nova-scheduler-0@zoneB", "nova-cell0-conductor-0@zoneB", "nova-cell1-conductor-0@zoneB"))
		Expect(w.jobs()).To(Equal(map[string]bool{
			"nova-api-db-sync": true, "nova-cell0-db-sync": true, "nova-cell1-db-sync": true, "nova-cell0-mapping": true, "nova-cell1-mapping": true,
			"nova-cell0-online-migrations": true, "nova-cell1-online-migrations": true,
		}))
		ran := w.ran(mark)
		Expect(ran).To(HaveLen(7))
		for _, cell := range []string{"nova-cell0", "nova-cell1"} {
			Expect(slices.Index(ran, cell+"-mapping")).To(BeNumerically(">", max(slices.Index(ran, "nova-api-db-sync"), slices.Index(ran, cell+"-db-sync"))), "%s of %v", cell, ran)
		}
		Expect(w.config("nova-api", "01-nova.conf")).To(And(
			ContainSubstring("transport_url = rabbit://bus0/"), ContainSubstring("connection = mysql+pymysql://nova_api:a@openstack.%s.svc/nova_api?charset=utf8", w),
			ContainSubstring("connection = mysql+pymysql://nova:d@openstack.%s.svc/nova_cell0", w)))
		Expect(w.pod("nova-api-0").Spec.Containers[0].Lifecycle.PreStop.Exec.Command).To(Equal([]string{"sleep", "5"}), "a rollout refuses no request")
		Expect(w.config("nova-cell1-mapping", "01-nova.conf")).To(And(ContainSubstring("transport_url = rabbit://bus1/"), ContainSubstring("/nova_cell1?charset")))
		Eventually(w.users).WithArguments("t").Should(ConsistOf("Nova/nova", "NovaCell/nova-cell0", "NovaCell/nova-cell1"))
		quiet()

		By("giving a cell another message bus")
		mark, births := wire.Mark(), w.births()
		w.apply(w.secret("bus1", "transport_url", "rabbit://elsewhere/"))
		Eventually(func() []string { return w.ran(mark) }).Should(ConsistOf("nova-cell1-db-sync", "nova-cell1-mapping", "nova-cell1-online-migrations"))
		Eventually(w.births).Should(And(HaveLen(5), Not(HaveKeyWithValue("nova-api-0", births["nova-api-0"]))), "the API knows the cells that are mapped when it starts")
		ready(nova())
		Expect(w.config("nova-cell1-mapping", "01-nova.conf")).To(ContainSubstring("transport_url = rabbit://elsewhere/"))
		quiet()
		Expect(w.ran(mark)).To(HaveLen(3))

		By("taking cell0's access to the API database away, which removes nothing")
		births = w.births()
		change(nova(), func(n *novav1.Nova) {
			zero := n.Spec.CellTemplates["cell0"]
			zero.HasAPIAccess = false
			n.Spec.CellTemplates["cell0"] = zero
		})
		shows(nova(), novav1.NovaAPIReadyCondition, "False/InvalidSpec/Error", "cell0", "hasAPIAccess", "replicas to 0")
		Consistently(w.births).Should(And(HaveKeyWithValue("nova-api-0", births["nova-api-0"]), HaveKeyWithValue("nova-scheduler-0", births["nova-scheduler-0"])))

		By("running no API")
		change(nova(), func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](0) })
		shows(nova(), novav1.NovaAPIReadyCondition, "True/Ready/", "The API is disabled", "spec.apiServiceTemplate.replicas")
		Eventually(w.births).Should(HaveLen(2))
		Eventually(w.jobs).Should(And(HaveLen(2), HaveKey("nova-cell0-db-sync"), HaveKey("nova-cell1-db-sync")))
		Expect(w.users("t")).To(ContainElement("Nova/nova"), "it still refers to it")
		Expect(get(Default, nova()).Finalizers).To(ConsistOf(novav1.HeldSecretsFinalizer))
	})

	It("runs no API, and leaves the API database alone, unless it is asked to", func() {
		mark := wire.Mark()
		w.apply(describe("nova", ""))
		ready(nova())
		Expect(w.births()).To(And(HaveLen(2), HaveKey("nova-cell0-conductor-0"), HaveKey("nova-cell1-conductor-0")))
		Expect(w.ran(mark)).To(ConsistOf("nova-cell0-db-sync", "nova-cell1-db-sync"))
		shows(nova(), novav1.NovaAPIReadyCondition, "True/Ready/", "The API is disabled")
	})

	It("runs Jobs again for each new token, and none when a token is removed", func() {
		w.apply(describe("nova", oneAPI))
		ready(nova())
		mark := wire.Mark()
		token := func(obj client.Object, value any) {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{common.RerunAnnotation: value}}})
			Expect(err).NotTo(HaveOccurred())
			Expect(api.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		}
		all := []string{"nova-api-db-sync", "nova-cell0-db-sync", "nova-cell0-mapping", "nova-cell1-db-sync", "nova-cell1-mapping", "nova-cell0-online-migrations", "nova-cell1-online-migrations", "nova-discover-all-hosts"}
		token(nova(), "restored")
		Eventually(func() []string { return w.ran(mark) }).Should(ConsistOf(all))
		ready(nova())
		quiet()

		By("removing it")
		token(nova(), nil)
		quiet()
		Expect(w.ran(mark)).To(ConsistOf(all))
		ready(nova())

		By("asking for one cell")
		mark = wire.Mark()
		token(&novav1.NovaCell{ObjectMeta: w.meta("nova-cell1")}, "again")
		Eventually(func() []string { return w.ran(mark) }).Should(ConsistOf("nova-cell1-db-sync"))
		quiet()
		Expect(w.ran(mark)).To(HaveLen(1))
	})

	It("continues without a cell that cannot be mapped, and says so", func() {
		cluster.failJobs(func(pod *k8scorev1.Pod) string {
			if strings.Contains(pod.Name, "cell1-db-sync") {
				return "DatabaseUnreachable"
			}
			return ""
		})
		w.apply(describe("nova", oneAPI))
		shows(nova(), novav1.NovaCellMappingsReadyCondition, "False/NovaCellNotReady/Info", "NovaCell nova-cell1", "DBSyncReady")
		Eventually(w.births).Should(And(HaveKey("nova-api-0"), HaveKey("nova-scheduler-0"), HaveKey("nova-cell0-conductor-0"), Not(HaveKey("nova-cell1-conductor-0"))))
		cluster.failJobs(nil)
		ready(nova())
	})

	It("works independently of another one whose cells have the same short names", func() {
		w.apply(describe("nova", oneAPI) + "\n---\n" + describe("other", oneAPI))
		ready(nova(), &novav1.Nova{ObjectMeta: w.meta("other")})
		Expect(w.births()).To(HaveLen(8))
		before := w.births()
		Expect(api.Delete(ctx, &novav1.Nova{ObjectMeta: w.meta("other")})).To(Succeed())
		Eventually(w.births).Should(HaveLen(4))
		for name, uid := range w.births() {
			Expect(uid).To(Equal(before[name]), name)
		}
		ready(nova())
	})
})
