package openstack

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

const pendingRestart = "A restart is pending for edpm_libvirt_virtlogd"

// guestStories have what is done to the host of a guest, which lives on.
func guestStories() {
	It("outlives one more run of every playbook", func(ctx SpecContext) {
		before := look(ctx)
		rerun(ctx, "every playbook")
		before.lives(ctx)
	}, SpecTimeout(8*time.Minute))

	It("outlives another image of nova-compute", func(ctx SpecContext) {
		before, image := look(ctx), anotherImage(ctx, "localhost/edpm-nova-compute")
		Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) { obj.Spec.NovaComputeContainerImage = image })).To(Succeed())
		Eventually(imageOf).WithArguments(ctx, "edpm_nova_compute").WithTimeout(4 * time.Minute).Should(Equal(image))
		settled(ctx)
		before.lives(ctx)
	}, SpecTimeout(8*time.Minute))

	It("outlives another image of libvirt, with which virtlogd waits for its end", func(ctx SpecContext) {
		before, image := look(ctx), anotherImage(ctx, "localhost/edpm-nova-libvirt")
		old := idOf(ctx, "edpm_libvirt_virtlogd")
		Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) { obj.Spec.NovaLibvirtContainerImage = image })).To(Succeed())
		Eventually(imageOf).WithArguments(ctx, "edpm_libvirt_libvirtd").WithTimeout(4 * time.Minute).Should(Equal(image))
		settled(ctx)
		before.lives(ctx)
		By("saying so in the result of the host")
		Expect(idOf(ctx, "edpm_libvirt_virtlogd")).To(Equal(old))
		Expect(messageOf(ctx, "libvirt")).To(ContainSubstring(pendingRestart))
	}, SpecTimeout(8*time.Minute))

	It("outlives a restart and a crash of libvirt, and a restart of podman", Label(vm), func(ctx SpecContext) {
		before := look(ctx)
		for _, script := range []string{
			"systemctl restart edpm_libvirt_libvirtd", "podman kill edpm_libvirt_libvirtd", "systemctl restart podman.socket podman.service",
		} {
			By(script)
			_, err := compute.SSH(ctx, script)
			Expect(err).NotTo(HaveOccurred())
			Eventually(compute.SSH).WithArguments(ctx, "podman exec edpm_libvirt_libvirtd virsh --quiet uri").WithTimeout(time.Minute).Should(ContainSubstring("qemu:///system"))
			before.lives(ctx)
		}
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(2 * time.Minute).Should(HaveKeyWithValue(compute.Name, "up"))
	}, SpecTimeout(6*time.Minute))

	It("lets what waited for its end run", func(ctx SpecContext) {
		openstack(ctx, "server", "delete", "--wait", guest)
		rerun(ctx, "no guests")
		Expect(imageOf(ctx, "edpm_libvirt_virtlogd")).To(HaveSuffix(":next"))
		Expect(messageOf(ctx, "libvirt")).To(BeEmpty())
		guest = createGuest(ctx, guestName, compute.Name)
	}, SpecTimeout(12*time.Minute))

	It("shuts down with its host after nova-compute, which therefore starts it again", func(ctx SpecContext) {
		resumeGuests(ctx)
		before := look(ctx)
		Expect(compute.ShutDown(ctx)).To(Succeed())
		Expect(statusOfGuest(ctx)).To(Equal("ACTIVE"), "nova-compute took the guest for stopped by its owner")
		Expect(bringUp(ctx, compute)).To(Succeed())
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(3 * time.Minute).Should(HaveKeyWithValue(compute.Name, "up"))
		Eventually(qemu).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(And(HaveLen(1), Not(Equal(before.processes))))
		Expect(statusOfGuest(ctx)).To(Equal("ACTIVE"))
		Expect(compute.SSH(ctx, "grep -h 'shutting down' /var/log/containers/libvirt/qemu/*.log | tail -n 1")).To(HaveSuffix("reason=shutdown"))
	}, SpecTimeout(15*time.Minute))
}

// resumeGuests has nova-compute start the guests of its host again when it starts.
func resumeGuests(ctx context.Context) {
	GinkgoHelper()
	Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) {
		obj.Spec.CustomServiceConfig = "[DEFAULT]\nresume_guests_state_on_host_boot = True\n"
	})).To(Succeed())
	Eventually(compute.SSH).WithArguments(ctx, "podman exec edpm_nova_compute cat /etc/nova/nova.conf.d/02-nova-override.conf").WithTimeout(4 * time.Minute).Should(
		ContainSubstring("resume_guests_state_on_host_boot"))
	settled(ctx)
}

// sight is what shows that a guest is the one that it was.
type sight struct {
	processes []string
	uptime    int
}

func look(ctx context.Context) sight {
	GinkgoHelper()
	seen := sight{processes: qemu(ctx)}
	Expect(seen.processes).NotTo(BeEmpty())
	seen.uptime, _ = uptime(ctx)
	return seen
}

// lives expects the guest to have the process that it had, and its host no other.
func (s sight) lives(ctx context.Context) {
	GinkgoHelper()
	Expect(qemu(ctx)).To(Equal(s.processes), "the process of the guest")
	s.speaks(ctx)
}

// speaks expects the guest to continue to say on its console for how long it is up.
func (s sight) speaks(ctx context.Context) {
	GinkgoHelper()
	var now int
	Eventually(func() (err error) {
		now, err = uptime(ctx)
		return err
	}).WithTimeout(time.Minute).Should(Succeed(), "libvirt may be starting again")
	Eventually(uptime).WithArguments(ctx).WithTimeout(time.Minute).Should(BeNumerically(">", max(now, s.uptime)))
	Expect(statusOfGuest(ctx)).To(Equal("ACTIVE"))
}

// console is what the guest printed.
func console(ctx context.Context) (string, error) {
	return cluster.OpenStack(ctx, "console", "log", "show", guest)
}

// printed is what the guest prints every second.
var printed = regexp.MustCompile(`uptime: (\d+) of boot (\S+)\s`)

// lastPrinted is what the guest printed last: for how many seconds it is up, since which boot.
func lastPrinted(ctx context.Context) (seconds int, boot string, err error) {
	out, err := console(ctx)
	if err != nil {
		return 0, "", err
	}
	if all := printed.FindAllStringSubmatch(out, -1); len(all) > 0 {
		seconds, err = strconv.Atoi(all[len(all)-1][1])
		boot = all[len(all)-1][2]
	}
	return seconds, boot, err
}

// uptime is for how many seconds the guest says that it is up.
func uptime(ctx context.Context) (int, error) {
	seconds, _, err := lastPrinted(ctx)
	return seconds, err
}

// boot identifies the boot of the guest.
func boot(ctx context.Context) (string, error) {
	_, id, err := lastPrinted(ctx)
	return id, err
}

// rerun has every playbook run once more, and waits for the end.
func rerun(ctx context.Context, token string) {
	GinkgoHelper()
	annotateRerun(ctx, token)
	Eventually(tokenOfNova).WithArguments(ctx).WithTimeout(5 * time.Minute).Should(Equal(token))
	settled(ctx)
}

func annotateRerun(ctx context.Context, token string) {
	GinkgoHelper()
	Expect(change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name)}, func(node *dataplanev1.OpenStackDataPlaneNode) {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.RerunAnnotation, token)
	})).To(Succeed())
}

// tokenOfNova is the token with which the playbook of nova ran last.
func tokenOfNova(ctx context.Context) (string, error) {
	obj := external()
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	return obj.Status.Runs["nova"].Rerun, err
}

// settled waits until the compute is Ready, and nova says so.
func settled(ctx context.Context) {
	GinkgoHelper()
	Eventually(expect.Read(ctx, k8s, external())).WithTimeout(4 * time.Minute).Should(expect.Ready())
	Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(2 * time.Minute).Should(HaveKeyWithValue(compute.Name, "up"))
}

// anotherImage has an image on the host that differs from the latest one in its id.
func anotherImage(ctx context.Context, name string) string {
	GinkgoHelper()
	_, err := compute.SSH(ctx, fmt.Sprintf("podman create --name next %[1]s:latest true && podman commit --quiet --change LABEL=next=1 next %[1]s:next && podman rm next", name))
	Expect(err).NotTo(HaveOccurred())
	return name + ":next"
}

func imageOf(ctx context.Context, container string) (string, error) {
	return inspect(ctx, container, "{{.ImageName}}")
}

func idOf(ctx context.Context, container string) string {
	GinkgoHelper()
	id, err := inspect(ctx, container, "{{.Id}}")
	Expect(err).NotTo(HaveOccurred())
	return id
}

func inspect(ctx context.Context, container, format string) (string, error) {
	out, err := compute.SSH(ctx, "podman container inspect --format '"+format+"' "+container)
	return strings.TrimSpace(out), err
}

// messageOf is what the host said in the run that did the step last.
func messageOf(ctx context.Context, step string) string {
	GinkgoHelper()
	obj, run := external(), &ansibleeev1.OpenStackAnsibleEE{}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	run.ObjectMeta = named(obj.Status.Runs[step].Name)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
	result, known := run.Host(compute.Name)
	Expect(known).To(BeTrue(), "run %s has no result for the host", run.Name)
	return result.Message
}
