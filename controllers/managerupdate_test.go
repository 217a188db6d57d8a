package controllers_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/images"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// earlierVersion is the commit of the version from which the manager is updated.
const earlierVersion = "8aabe89b8e6c14f2778c22d2c6256b09908e2938"

// restrict has the manager of that version see one namespace, as those of this suite do.
const restrict = `package main

import (
	"os"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func restrict(options manager.Options) manager.Options {
	options.Cache.DefaultNamespaces = map[string]cache.Config{os.Getenv("STORY_NAMESPACE"): {}}
	return options
}
`

// buildEarlier returns the manager of the earlier version.
func buildEarlier() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	command := func(in, name string, args ...string) {
		GinkgoHelper()
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = in
		out, err := c.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s %v: %s", name, args, out)
	}
	if exec.CommandContext(ctx, "git", "-C", envtest.File(), "cat-file", "-e", earlierVersion).Run() != nil {
		Skip("the history has no commit " + earlierVersion)
	}
	source, archive := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar")
	Expect(os.Mkdir(source, 0o700)).To(Succeed())
	command(envtest.File(), "git", "archive", "--output", archive, earlierVersion)
	command(source, "tar", "--extract", "--file", archive)
	main := filepath.Join(source, "cmd", "manager", "main.go")
	text, err := os.ReadFile(main)
	Expect(err).NotTo(HaveOccurred())
	const options = "managerOptions(opts, scheme, decision.Running)"
	Expect(string(text)).To(ContainSubstring(options))
	Expect(os.WriteFile(main, []byte(strings.Replace(string(text), options, "restrict("+options+")", 1)), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(filepath.Dir(main), "restrict.go"), []byte(restrict), 0o600)).To(Succeed())
	command(source, "go", "build", "-o", filepath.Join(dir, "manager"), "./cmd/manager")
	return filepath.Join(dir, "manager")
}

// startEarlier starts it for the namespace until the function that is returned kills it.
func (w *world) startEarlier(program string) (kill func()) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(env.WriteKubeconfig(kubeconfig)).To(Succeed())
	c := exec.Command(program, "--leader-elect=false", "--health-probe-bind-address=0", "--webhooks=false",
		"--batch-debounce="+w.opts.Engine.Debounce.String(), "--batch-patience="+w.opts.Engine.Patience.String())
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "STORY_NAMESPACE="+w.ns,
		"RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT="+w.opts.Images.AnsibleEE, "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT="+w.opts.Images.NovaAnsibleEE,
		"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT="+w.opts.Images.NovaCompute, "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT="+w.opts.Images.NovaLibvirt,
		"RELATED_IMAGE_NOVA_CONDUCTOR_IMAGE_URL_DEFAULT="+w.opts.Images.NovaConductor, "RELATED_IMAGE_NOVA_API_IMAGE_URL_DEFAULT="+w.opts.Images.NovaAPI,
		"RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT="+w.opts.Images.NovaScheduler, "RELATED_IMAGE_NOVA_NOVNC_IMAGE_URL_DEFAULT="+w.opts.Images.NovaNoVNC)
	c.Stdout, c.Stderr = GinkgoWriter, GinkgoWriter
	Expect(c.Start()).To(Succeed())
	ended := false
	kill = func() {
		if !ended {
			ended = true
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	DeferCleanup(kill)
	return kill
}

// templates are those of the pods of a namespace, by StatefulSet.
func (w *world) templates() map[string]corev1.PodTemplateSpec {
	GinkgoHelper()
	sets, templates := &appsv1.StatefulSetList{}, map[string]corev1.PodTemplateSpec{}
	Expect(api.List(ctx, sets, client.InNamespace(w.ns))).To(Succeed())
	for _, set := range sets.Items {
		templates[set.Name] = set.Spec.Template
	}
	return templates
}

// unexplained is what of a template docs/upgrade.md does not name as changed once: how programs
// are started, probed and stopped, and what their environment has.
func unexplained(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	rest := template.DeepCopy()
	rest.Spec.TerminationGracePeriodSeconds, rest.Spec.ShareProcessNamespace = nil, nil
	for i := range rest.Spec.Containers {
		c := &rest.Spec.Containers[i]
		c.Command, c.Env = nil, nil
		c.ReadinessProbe, c.LivenessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
	}
	return *rest
}

// runNames are the names of the runs and Jobs.
func (w *world) runNames() []string {
	var names []string
	for _, run := range w.runs() {
		names = append(names, run.Name)
	}
	slices.Sort(names)
	return names
}

var _ = Describe("An update of the manager", func() {
	It("runs nothing on hosts, and keeps the images of nova", long, func() {
		if !inFull {
			Skip("the earlier version would have to be built: set E2E_LONG=1")
		}
		program := buildEarlier()
		w := newPlace()
		w.opts.Images = images.Defaults{
			NovaCompute: "compute:1", NovaLibvirt: "libvirt:1", NovaAnsibleEE: "nova-ee:1", AnsibleEE: "ee:1",
			NovaConductor: "conductor:1", NovaAPI: "api:1", NovaScheduler: "scheduler:1", NovaNoVNC: "novnc:1",
		}
		Expect(env.GrantSecrets(ctx, w.ns)).To(Succeed())
		w.databases = startDatabases(w.ns)
		startSets(w.ns)
		cell, nova := MakeCell("cell1", w.ns).Obj(), MakeNova("nova", w.ns, "osp-secret", "cell1")
		cell.Spec.CellDatabaseHostname = "database.example"
		nova.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1)
		nova.Spec.CellTemplates[novav1.Cell0Name] = novav1.NovaCellTemplate{HasAPIAccess: true}
		ironic := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}, Spec: novav1.NovaComputeSpec{CellName: "cell1"}}
		w.secretOf("cell1-password", "ServicePassword", "p", "CellDatabasePassword", "d")
		w.secretOf("osp-secret", "NovaPassword", "p", "NovaAPIDatabasePassword", "a", "NovaCellDatabasePassword", "d")
		w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), MakeSecret("cell1-bus", w.ns, "transport_url", "rabbit://cell1"),
			MakeSecret("rabbitmq-transport-url-nova-cell0-transport", w.ns, "transport_url", "rabbit://cell0"),
			MakeSecret("rabbitmq-transport-url-nova-cell1-transport", w.ns, "transport_url", "rabbit://cell1"),
			cell, nova, ironic, w.role("compute").Cell("cell1").Obj())
		w.makeNodes(2, "compute")

		By("deploying everything with the earlier version")
		kill := w.startEarlier(program)
		defer kill()
		w.computesReady(nodeNames(2)...)
		for _, obj := range []judged{cell, ironic} {
			w.condition(obj, condition.DeploymentReadyCondition, "True/Ready/")
		}
		var before map[string]corev1.PodTemplateSpec
		Eventually(func(g Gomega) {
			before = w.templates()
			g.Expect(slices.Sorted(maps.Keys(before))).To(Equal([]string{"cell1-conductor", "ironic", "nova-api", "nova-cell0-conductor", "nova-cell1-conductor", "nova-scheduler"}))
			executions := len(w.hosts.Book())
			time.Sleep(3 * time.Second)
			g.Expect(w.hosts.Book()).To(HaveLen(executions))
			g.Expect(w.templates()).To(Equal(before))
		}).WithTimeout(later).Should(Succeed())
		executions, runs := len(w.hosts.Book()), w.runNames()

		By("killing it, and starting this one")
		kill()
		w.running = startManager(w.ns, w.opts)
		w.condition(cell, rolledOut, "True/Ready/", "All 4 pods and computes")
		w.held("cell1-bus", "novacell-cell1")
		w.quiet()
		Expect(w.hosts.Book()[executions:]).To(BeEmpty())
		Expect(w.runNames()).To(Equal(runs))
		Expect(w.databases.times()).To(HaveEach(1), "each Job runs once for its inputs, some of which docs/upgrade.md names")
		after := w.templates()
		for name := range before {
			Expect(unexplained(after[name])).To(Equal(unexplained(before[name])), "pods of %s", name)
		}

		By("removing a node, which the earlier version gave its finalizers")
		remove(w.node("n000"))
		gone(w.node("n000"))
		w.exactlyOnce()
	})
})
