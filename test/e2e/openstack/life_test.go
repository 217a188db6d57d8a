package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// lifeStories have what a compute and nova say of each other until it is gone.
func lifeStories() {
	It("runs its playbooks again while its guest runs", func(ctx SpecContext) {
		before := qemu(ctx)
		Expect(before).NotTo(BeEmpty())
		Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) { obj.Spec.CustomServiceConfig += "[DEFAULT]\ndebug = True\n" })).To(Succeed())
		Eventually(compute.SSH).WithArguments(ctx, "grep -c DEBUG "+novaLog+" || true").WithTimeout(3 * time.Minute).ShouldNot(Equal("0"))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(3 * time.Minute).Should(expect.Ready())
		Expect(qemu(ctx)).To(Equal(before), "the process of the guest")
		Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal("ACTIVE"))
	}, SpecTimeout(7*time.Minute))

	It("stays disabled for the reason that its node gives, until that is removed", func(ctx SpecContext) {
		Expect(annotate(ctx, "edpm: new memory")).To(Succeed())
		Eventually(service).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal("disabled up edpm: new memory"))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "edpm: new memory"))
		Expect(annotate(ctx, "")).To(Succeed())
		Eventually(service).WithArguments(ctx).WithTimeout(time.Minute).Should(HavePrefix("enabled up"))
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(time.Minute).Should(expect.Ready())
	}, SpecTimeout(5*time.Minute))

	It("says that its service is down, runs nothing for it, and is Ready when it is back", func(ctx SpecContext) {
		runs := external()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(runs), runs)).To(Succeed())
		_, err := compute.SSH(ctx, "systemctl stop edpm_nova_compute.service")
		Expect(err).NotTo(HaveOccurred())
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(3 * time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason, "has not reported to nova since"))
		_, err = compute.SSH(ctx, "systemctl start edpm_nova_compute.service")
		Expect(err).NotTo(HaveOccurred())
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(2 * time.Minute).Should(expect.Ready())
		now := external()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
		Expect(now.Status.Runs).To(Equal(runs.Status.Runs))
	}, SpecTimeout(7*time.Minute))

	It("stays until its guest is deleted, and then leaves nothing in nova, placement and on its host", func(ctx SpecContext) {
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name)}
		Expect(k8s.Delete(ctx, node)).To(Succeed())
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "has 1 instances"))
		Expect(service(ctx)).To(HavePrefix("disabled up"))
		Expect(statusOfGuest(ctx)).To(Equal("ACTIVE"))

		openstack(ctx, "server", "delete", "--wait", guest)
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(node), node)) }).WithTimeout(5 * time.Minute).Should(BeTrue())
		Expect(hostsOfServices(ctx, "nova-compute")).To(BeEmpty())
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).NotTo(ContainSubstring(compute.Name))
		Expect(openstack(ctx, "resource", "provider", "list", "--format", "value")).NotTo(ContainSubstring(compute.Name))
		Expect(compute.SSH(ctx, "systemctl list-units --all --plain --no-legend 'edpm_nova*' 'edpm_libvirt*'")).To(BeEmpty())
	}, SpecTimeout(9*time.Minute))
}

func external() *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: named(compute.Name)}
}

// change patches what a person changes of an object.
func change[T client.Object](ctx context.Context, obj T, f func(T)) error {
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	before := obj.DeepCopyObject().(client.Object)
	f(obj)
	return k8s.Patch(ctx, obj, client.MergeFrom(before))
}

// annotate has the compute disabled for a reason, or enabled without one.
func annotate(ctx context.Context, reason string) error {
	return change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name)}, func(node *dataplanev1.OpenStackDataPlaneNode) {
		if reason == "" {
			delete(node.Annotations, common.DisableAnnotation)
			return
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[common.DisableAnnotation] = reason
	})
}

// service is what nova says of the compute: status, state and the reason.
func service(ctx context.Context) (string, error) {
	out, err := cluster.OpenStack(ctx, "compute", "service", "list", "--long", "--host", compute.Name, "--service", "nova-compute", "--format", "json")
	if err != nil {
		return "", err
	}
	var found []map[string]any
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 {
		return "", fmt.Errorf("nova lists %s (%w)", out, err)
	}
	return fmt.Sprintf("%v %v %v", found[0]["Status"], found[0]["State"], found[0]["Disabled Reason"]), nil
}

// qemu are the processes of guests on the host.
func qemu(ctx context.Context) []string {
	GinkgoHelper()
	out, err := compute.SSH(ctx, "pgrep -f '[q]emu-system.*guest=' || true")
	Expect(err).NotTo(HaveOccurred())
	pids := strings.Fields(out)
	slices.Sort(pids)
	return pids
}
