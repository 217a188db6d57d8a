package openstack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// drainStories have hosts give all their guests to one another. One guest is on the other host
// before and after.
func drainStories(other func() lab.Host, guestThere *string) {
	var guests []string // five, of which the first is locked

	It("hold guests, of which an owner locks one", func(ctx SpecContext) {
		openstack(ctx, "quota", "set", "--instances", "20", "--cores", "20", "admin")
		for i := range 5 {
			guests = append(guests, createGuest(ctx, fmt.Sprintf("drained-%d", i), other().Name))
		}
	}, SpecTimeout(15*time.Minute))

	rounds := 1
	if tier.All() {
		rounds = 21 // an odd number: the guests end where they are looked for
	}
	for round := range rounds {
		It("are drained while the manager is killed, but for the guest that is locked", func(ctx SpecContext) {
			from, to := other(), compute
			if round%2 == 1 {
				from, to = to, from
			}
			openstack(ctx, "server", "lock", guests[0])
			drain(ctx, from, "live")
			pause := time.Duration(rand.N(int64(20 * time.Second)))
			By(fmt.Sprintf("killing the manager after %v", pause.Round(time.Millisecond)))
			time.Sleep(pause)
			killManager(ctx)

			Eventually(placesOf).WithArguments(ctx, guests[1:]).WithTimeout(15 * time.Minute).Should(HaveEach(to.Name + " ACTIVE"))
			Eventually(drained).WithArguments(ctx, from).WithTimeout(2 * time.Minute).Should(And(
				HavePrefix("GuestsRemain "), ContainSubstring("is locked"), ContainSubstring(guests[0])))
			Expect(placesOf(ctx, guests[:1])).To(Equal([]string{from.Name + " ACTIVE"}))

			openstack(ctx, "server", "unlock", guests[0])
			Eventually(drained).WithArguments(ctx, from).WithTimeout(10 * time.Minute).Should(HavePrefix(string(novav1.HostEmptyReason)))
			Expect(placesOf(ctx, guests)).To(HaveEach(to.Name + " ACTIVE"))
			Expect(qemuOf(ctx, from)).To(BeEmpty())
			Expect(qemuOf(ctx, to)).To(ContainElements(guests))

			drain(ctx, from, "")
			Eventually(hostsAndStates).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(HaveKeyWithValue(from.Name, "enabled"))
		}, SpecTimeout(35*time.Minute))
	}

	It("move a guest back and forth, which is never lost", func(ctx SpecContext) {
		times := 2
		if tier.All() {
			times = 100
		}
		before, err := boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range times {
			to := other()
			if i%2 == 1 {
				to = compute
			}
			move(ctx, to)
			Eventually(boot).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal(before), "the guest was started again by move %d", i)
		}
	}, SpecTimeout(2*time.Hour))

	It("have none of them at the end", func(ctx SpecContext) {
		for _, id := range append(guests, *guestThere) {
			openstack(ctx, "server", "delete", "--wait", id)
		}
		*guestThere = createGuest(ctx, "further", other().Name)
	}, SpecTimeout(5*time.Minute))
}

// drain has the guests of a host moved in a way, or ends that.
func drain(ctx context.Context, host lab.Host, how string) {
	GinkgoHelper()
	Expect(change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(host.Name)}, func(node *dataplanev1.OpenStackDataPlaneNode) {
		if delete(node.Annotations, common.DrainAnnotation); how != "" {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.DrainAnnotation, how)
		}
	})).To(Succeed())
}

// drained is the reason and the message of the condition Drained of a host.
func drained(ctx context.Context, host lab.Host) (string, error) {
	obj := &novav1.NovaExternalCompute{ObjectMeta: named(host.Name)}
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if c := obj.Status.Conditions.Get(novav1.DrainedCondition); c != nil {
		return string(c.Reason) + " " + c.Message, err
	}
	return "none", err
}

// placesOf are the hosts and the states of guests.
func placesOf(ctx context.Context, guests []string) ([]string, error) {
	var places []string
	for _, id := range guests {
		out, err := cluster.OpenStack(ctx, "server", "show", id, "--format", "value", "--column", "OS-EXT-SRV-ATTR:host", "--column", "status")
		if err != nil {
			return nil, err
		}
		places = append(places, strings.Join(strings.Fields(out), " "))
	}
	return places, nil
}

// qemuOf are the ids of the guests that have a process on a host.
func qemuOf(ctx context.Context, host lab.Host) ([]string, error) {
	out, err := host.SSH(ctx, "pgrep -af '[q]emu-system.*guest=' | grep -o 'uuid [0-9a-f-]*' | cut -d ' ' -f 2 || true")
	ids := strings.Fields(out)
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// hostsAndStates are whether services of nova-compute are enabled, by host.
func hostsAndStates(ctx context.Context) (map[string]string, error) {
	out, err := cluster.OpenStack(ctx, "compute", "service", "list", "--service", "nova-compute", "--format", "value", "--column", "Host", "--column", "Status")
	states := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 2 {
			states[fields[0]] = fields[1]
		}
	}
	return states, err
}
