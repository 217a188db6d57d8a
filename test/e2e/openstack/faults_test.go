package openstack

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// faultStories have something break that nova needs.
func faultStories() {
	It("report down while the message bus is, which is named, and heal without a run", func(ctx SpecContext) {
		runs := runsOf(ctx)
		stop(ctx, "lab-rabbitmq")
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(4 * time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason, "has not reported to nova since", "NovaCell nova-cell1 is not Ready (PodsNotReady)"))
		start(ctx, "lab-rabbitmq")
		healed(ctx)
		Expect(runsOf(ctx)).To(Equal(runs))
	}, SpecTimeout(10*time.Minute))

	It("stay as they were while the database is down, which the Nova names", func(ctx SpecContext) {
		stop(ctx, "lab-mariadb")
		Eventually(unaskable).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(BeTrue())
		Expect(external()).To(WithTransform(read(ctx), expect.Ready()))
		start(ctx, "lab-mariadb")
		healed(ctx)
	}, SpecTimeout(8*time.Minute))

	It("stay as they were while keystone is unavailable, also for a new manager", func(ctx SpecContext) {
		stop(ctx, "lab-keystone")
		killManager(ctx)
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(2 * time.Minute).Should(
			expect.False(novav1.NovaComputeServicesReadyCondition, novav1.KeystoneUnreachableReason, "keystone at http://"+controller.IP+":5000", "shown as they were"))
		Expect(external()).To(WithTransform(read(ctx), expect.Ready()))
		start(ctx, "lab-keystone")
		healed(ctx)
	}, SpecTimeout(8*time.Minute))

	It("keep what worked with a wrong password of the message bus, which the result of the host has, and heal with the right one", func(ctx SpecContext) {
		before, right := look(ctx), busURL(ctx)
		setBus(ctx, strings.Replace(right, "lab-password", "wrong", 1))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(6 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Failed", "edpm_nova_compute.service does not stay up", "ACCESS_REFUSED"))
		Expect(qemu(ctx)).To(Equal(before.processes), "the process of the guest")
		setBus(ctx, right)
		healed(ctx)
		before.lives(ctx)
	}, SpecTimeout(14*time.Minute))

	It("keep what worked with a wrong password of keystone, which the result of the host has, and heal with the right one", func(ctx SpecContext) {
		before := look(ctx)
		undo := configure(ctx, "[placement]\npassword = wrong\n")
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(5 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Failed", "edpm_nova_compute.service does not stay up", "(HTTP 401)"))
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(2 * time.Minute).Should(Equal(map[string]string{compute.Name: "up"}))
		undo()
		healed(ctx)
		before.lives(ctx)
	}, SpecTimeout(12*time.Minute))

	It("wait for a placement that the catalogue does not have, which is named, and heal", func(ctx SpecContext) {
		before := look(ctx)
		restore := unlist(ctx, "placement")
		killManager(ctx) // a token that is valid has the catalogue as it was
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(2 * time.Minute).Should(
			expect.False(novav1.NovaComputeServicesReadyCondition, novav1.PlacementMissingReason, "no internal endpoint of type placement"))
		Expect(external()).To(WithTransform(read(ctx), expect.Ready()))
		before.lives(ctx)
		restore()
		healed(ctx)
	}, SpecTimeout(8*time.Minute))

	It("report down while the conductor of their cell is too old to start, which its NovaCell says, and heal", func(ctx SpecContext) {
		before, runs := look(ctx), runsOf(ctx)
		restore := pretendVersion(ctx, 9999)
		conductor := &corev1.Pod{ObjectMeta: named("nova-cell1-conductor-0")}
		Expect(k8s.Delete(ctx, conductor, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(expect.Read(ctx, k8s, &novav1.NovaCell{ObjectMeta: named("nova-cell1")})).WithTimeout(4 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "PodsNotReady", "container nova-conductor of pod nova-cell1-conductor-0 has ended with exit code", "kubectl logs"))
		Expect(cluster.Kubectl(ctx, "logs", "--namespace", namespace, "--previous", "--container", "nova-conductor", conductor.Name)).To(ContainSubstring("ServiceTooOld"))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(4 * time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason, "NovaCell nova-cell1 is not Ready (PodsNotReady)"))
		restore()
		healed(ctx)
		before.lives(ctx)
		Expect(runsOf(ctx)).To(Equal(runs))
	}, SpecTimeout(14*time.Minute))
}

// purgeStories have rows of instances removed from the databases of cells.
func purgeStories() {
	It("archives and purges the databases of the cells as scheduled", func(ctx SpecContext) {
		now := func(name string) *batchv1.Job {
			_, err := cluster.Kubectl(ctx, "-n", namespace, "create", "job", "--from=cronjob/"+name, name+"-now")
			Expect(err).NotTo(HaveOccurred())
			return &batchv1.Job{ObjectMeta: named(name + "-now")}
		}
		for _, name := range []string{"nova-cell0-db-purge", "nova-cell1-db-purge", "nova-cell2-db-purge"} {
			job := now(name)
			Eventually(func() (int32, error) {
				err := k8s.Get(ctx, client.ObjectKeyFromObject(job), job)
				return job.Status.Succeeded, err
			}).WithTimeout(3*time.Minute).Should(BeEquivalentTo(1), name)
			log, err := cluster.Kubectl(ctx, "-n", namespace, "logs", "job/"+job.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(log).To(ContainSubstring("Nothing was archived."))
		}
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(time.Minute).Should(expect.Ready())
	}, SpecTimeout(6*time.Minute))
}

// cellStories have a cell that is removed.
func cellStories() {
	It("disappears from the API database, with its NovaCell, and the API restarts", func(ctx SpecContext) {
		Expect(novaManage(ctx, "cell_v2", "list_cells")).To(ContainSubstring("cell2"))
		Expect(change(ctx, nova(), func(obj *novav1.Nova) { delete(obj.Spec.CellTemplates, "cell2") })).To(Succeed())
		cell := &novav1.NovaCell{ObjectMeta: named("nova-cell2")}
		Eventually(missing).WithArguments(ctx, cell).WithTimeout(3 * time.Minute).Should(BeTrue())
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(3 * time.Minute).Should(expect.Ready())
		Expect(novaManage(ctx, "cell_v2", "list_cells")).To(And(ContainSubstring("cell1"), Not(ContainSubstring("cell2"))))
		Expect(hostsOfServices(ctx, "nova-conductor")).To(Equal(map[string]string{"nova-cell0-conductor-0": "up", "nova-cell1-conductor-0": "up"}))
	}, SpecTimeout(8*time.Minute))
}

// deathStories have a manager that dies all the time.
func deathStories() {
	It("appears in nova once, and not at all when it is removed, even if the manager is killed at random points", func(ctx SpecContext) {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1))
		node := nodeOf(compute)
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, node))).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(8 * time.Minute).Should(BeTrue())
		kills := keepKilling(ctx, rng)
		for round := 0; round < 5 && kills() < 3; round++ {
			addAndRemove(ctx)
		}
		Expect(kills()).To(BeNumerically(">=", 3), "kills of the manager")
	}, SpecTimeout(20*time.Minute))
}

// addAndRemove adds the compute and removes it, and looks for it in nova after each.
func addAndRemove(ctx context.Context) {
	GinkgoHelper()
	By("adding it")
	node := nodeOf(compute)
	Expect(k8s.Create(ctx, node)).To(Succeed())
	Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(external()), external()) }).WithTimeout(2 * time.Minute).Should(Succeed())
	Eventually(expect.Read(ctx, k8s, external())).WithTimeout(10 * time.Minute).Should(expect.Ready())
	Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up"}))
	Expect(strings.Count(novaManage(ctx, "cell_v2", "list_hosts"), compute.Name)).To(Equal(1))
	Expect(strings.Count(openstack(ctx, "resource", "provider", "list", "--format", "value"), compute.Name)).To(Equal(1))

	By("removing it")
	Expect(k8s.Delete(ctx, node)).To(Succeed())
	Eventually(missing).WithArguments(ctx, node).WithTimeout(8 * time.Minute).Should(BeTrue())
	Expect(hostsOfServices(ctx, "nova-compute")).To(BeEmpty())
	Expect(novaManage(ctx, "cell_v2", "list_hosts")).NotTo(ContainSubstring(compute.Name))
	Expect(openstack(ctx, "resource", "provider", "list", "--format", "value")).NotTo(ContainSubstring(compute.Name))
}

// missing reports whether an object does not exist.
func missing(ctx context.Context, obj client.Object) bool {
	return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj))
}

func stop(ctx context.Context, unit string) {
	GinkgoHelper()
	_, err := controller.Console(ctx, "systemctl stop "+unit)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { start(ctx, unit) })
}

// start the unit, and what was stopped with it.
func start(ctx context.Context, unit string) {
	GinkgoHelper()
	_, err := controller.Console(ctx, "systemctl start "+unit+" lab-openstack.target")
	Expect(err).NotTo(HaveOccurred())
}

// healed waits until the Nova and the compute are Ready, and nova says so.
func healed(ctx context.Context) {
	GinkgoHelper()
	Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(5 * time.Minute).Should(expect.Ready())
	Eventually(expect.Read(ctx, k8s, external())).WithTimeout(5 * time.Minute).Should(expect.Ready())
	Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(time.Minute).Should(Equal(map[string]string{compute.Name: "up"}))
}

// unaskable reports whether the Nova says that keystone, its API or a database are not reached.
func unaskable(ctx context.Context) (bool, error) {
	obj := nova()
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	c := obj.Status.Conditions.Get(novav1.NovaComputeServicesReadyCondition)
	if c == nil {
		return false, err
	}
	return slices.Contains([]condition.Reason{novav1.APIUnreachableReason, novav1.CellUnreachableReason, novav1.KeystoneUnreachableReason}, c.Reason), err
}

// read reads an object.
func read(ctx context.Context) func(*novav1.NovaExternalCompute) (*novav1.NovaExternalCompute, error) {
	return func(obj *novav1.NovaExternalCompute) (*novav1.NovaExternalCompute, error) {
		return obj, k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}
}

// runsOf are the runs of the compute.
func runsOf(ctx context.Context) any {
	GinkgoHelper()
	obj := external()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj.Status.Runs
}

// bus is the Secret with the message bus of cell1.
func bus() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named("rabbitmq-transport-url-nova-cell1-transport")}
}

func busURL(ctx context.Context) string {
	GinkgoHelper()
	s := bus()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
	return string(s.Data["transport_url"])
}

func setBus(ctx context.Context, url string) {
	GinkgoHelper()
	Expect(change(ctx, bus(), func(s *corev1.Secret) { s.Data["transport_url"] = []byte(url) })).To(Succeed())
}

// configure adds lines to customServiceConfig of the compute, until the function that it
// returns is called.
func configure(ctx context.Context, lines string) (undo func()) {
	GinkgoHelper()
	var was string
	Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) {
		was = obj.Spec.CustomServiceConfig
		obj.Spec.CustomServiceConfig += lines
	})).To(Succeed())
	return func() {
		GinkgoHelper()
		Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) { obj.Spec.CustomServiceConfig = was })).To(Succeed())
	}
}

// unlist takes the internal endpoint of a service out of the catalogue, until the function
// that it returns is called.
func unlist(ctx context.Context, service string) (restore func()) {
	GinkgoHelper()
	found := strings.Fields(openstack(ctx, "endpoint", "list", "--service", service, "--interface", "internal",
		"--format", "value", "--column", "ID", "--column", "Region", "--column", "URL"))
	Expect(found).To(HaveLen(3))
	openstack(ctx, "endpoint", "delete", found[0])
	return func() {
		GinkgoHelper()
		openstack(ctx, "endpoint", "create", "--region", found[1], service, "internal", found[2])
	}
}

// pretendVersion has the database of cell1 say that the conductor was of another version,
// as after an update whose image is taken back, until the function that it returns is called.
func pretendVersion(ctx context.Context, version int) (restore func()) {
	GinkgoHelper()
	query := func(sql string) string {
		GinkgoHelper()
		out, err := controller.Console(ctx, "mariadb --skip-column-names nova_cell1 --execute \""+sql+"\"")
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(out)
	}
	const where = " where services.binary = 'nova-conductor' and deleted = 0"
	was := query("select max(version) from services" + where)
	set := func(version string) { query("update services set version = " + version + where) }
	set(strconv.Itoa(version))
	return func() { set(was) }
}

var managerPods = client.MatchingLabels{"app.kubernetes.io/name": "edpm-operators"}

// killManager kills the manager at once.
func killManager(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(lab.ManagerNamespace), managerPods, client.GracePeriodSeconds(0))).To(Succeed())
}

// keepKilling kills the manager that leads, again and again, until the story ends. The function
// that it returns says how often.
func keepKilling(ctx context.Context, rng *rand.Rand) func() int64 {
	background, stop := context.WithCancel(ctx)
	var kills atomic.Int64
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-background.Done():
				return
			case <-time.After(time.Duration(1+rng.IntN(30)) * time.Second):
				if pod := leader(background); pod != nil && k8s.Delete(background, pod, client.GracePeriodSeconds(0)) == nil {
					kills.Add(1)
				}
			}
		}
	})
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
	return kills.Load
}

// leader is the pod whose manager leads, if any: one that is killed holds its lease for
// some seconds more, and the next one does nothing until then.
func leader(ctx context.Context) *corev1.Pod {
	leases, pods := &coordinationv1.LeaseList{}, &corev1.PodList{}
	if k8s.List(ctx, leases, client.InNamespace(lab.ManagerNamespace)) != nil || k8s.List(ctx, pods, client.InNamespace(lab.ManagerNamespace), managerPods) != nil {
		return nil
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool {
			return strings.HasPrefix(ptr.Deref(l.Spec.HolderIdentity, ""), pod.Name+"_")
		}) {
			return pod
		}
	}
	return nil
}
