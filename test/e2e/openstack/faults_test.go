package openstack

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// faultStories have something break that nova needs.
func faultStories() {
	It("are down while the message bus is, which is named, and heal without a run", func(ctx SpecContext) {
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

	It("stay as they were while keystone is away, also for a new manager", func(ctx SpecContext) {
		stop(ctx, "lab-keystone")
		killManager(ctx)
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(2 * time.Minute).Should(
			expect.False(novav1.NovaComputeServicesReadyCondition, novav1.KeystoneUnreachableReason, "keystone at http://"+controller.IP+":5000", "shown as they were"))
		Expect(external()).To(WithTransform(read(ctx), expect.Ready()))
		start(ctx, "lab-keystone")
		healed(ctx)
	}, SpecTimeout(8*time.Minute))

	It("are down with a wrong password of the message bus, which is named, and heal with the right one", func(ctx SpecContext) {
		right := busURL(ctx)
		setBus(ctx, strings.Replace(right, "lab-password", "wrong", 1))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(6 * time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason, "NovaCell nova-cell1 is not Ready"))
		setBus(ctx, right)
		healed(ctx)
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

	It("removes a cell from the API database, and the NovaCell, and restarts the API", func(ctx SpecContext) {
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
	It("is in nova once, and not at all when it is removed, though the manager is killed at random points", func(ctx SpecContext) {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1))
		node := describeNode()
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, node))).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(8 * time.Minute).Should(BeTrue())
		survive := keepKilling(ctx, rng)
		node = describeNode()
		Expect(k8s.Create(ctx, node)).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(external()), external()) }).WithTimeout(2 * time.Minute).Should(Succeed())
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(10 * time.Minute).Should(expect.Ready())
		Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up"}))
		Expect(strings.Count(novaManage(ctx, "cell_v2", "list_hosts"), compute.Name)).To(Equal(1))
		Expect(strings.Count(openstack(ctx, "resource", "provider", "list", "--format", "value"), compute.Name)).To(Equal(1))

		By("removing it")
		Expect(k8s.Delete(ctx, node)).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(8 * time.Minute).Should(BeTrue())
		Expect(survive()).To(BeNumerically(">=", 3), "kills of the manager")
		Expect(hostsOfServices(ctx, "nova-compute")).To(BeEmpty())
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).NotTo(ContainSubstring(compute.Name))
		Expect(openstack(ctx, "resource", "provider", "list", "--format", "value")).NotTo(ContainSubstring(compute.Name))
	}, SpecTimeout(20*time.Minute))
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

// unaskable reports whether the Nova says that its API or keystone do not answer.
func unaskable(ctx context.Context) (bool, error) {
	obj := nova()
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	c := obj.Status.Conditions.Get(novav1.NovaComputeServicesReadyCondition)
	said := c != nil && (c.Reason == novav1.APIUnreachableReason || c.Reason == novav1.KeystoneUnreachableReason)
	return said, err
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

var managerPods = client.MatchingLabels{"app.kubernetes.io/name": "edpm-operators"}

// killManager kills the manager at once.
func killManager(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(lab.ManagerNamespace), managerPods, client.GracePeriodSeconds(0))).To(Succeed())
}

// keepKilling kills the manager again and again until the function that it returns is
// called, which returns how often.
func keepKilling(ctx context.Context, rng *rand.Rand) func() int {
	background, stop := context.WithCancel(ctx)
	kills := 0
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-background.Done():
				return
			case <-time.After(time.Duration(8+rng.IntN(25)) * time.Second):
				if k8s.DeleteAllOf(background, &corev1.Pod{}, client.InNamespace(lab.ManagerNamespace), managerPods, client.GracePeriodSeconds(0)) == nil {
					kills++
				}
			}
		}
	})
	end := func() int {
		stop()
		ended.Wait()
		return kills
	}
	DeferCleanup(func() { end() })
	return end
}
