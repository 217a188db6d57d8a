package ovn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// nextImage is another image of the agents.
const nextImage = "localhost/edpm-ovn:next"

var _ = Describe("OVN on two hosts", Ordered, func() {
	Describe("guests", guestStories)
	Describe("while guests are there", changeStories)
	Describe("a host", lifeStories)
})

// guestStories have hosts that become chassis, and a guest on each.
func guestStories() {
	It("find their hosts registered with neutron, with both agents", func(ctx SpecContext) {
		describeHosts(ctx)
		for _, h := range hosts {
			Eventually(expect.Read(ctx, k8s, ovnController(h))).WithTimeout(15 * time.Minute).Should(expect.Ready())
			Eventually(expect.Read(ctx, k8s, agent(h))).WithTimeout(5 * time.Minute).Should(expect.Ready())
		}
		Eventually(agents).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(Equal(append(agentsOf(hosts[0]), agentsOf(hosts[1])...)))
		for _, h := range hosts {
			Expect(h.Console(ctx, "ovs-appctl dpif/show")).To(ContainSubstring("br-int:"))
			Expect(h.Console(ctx, "ovs-vsctl get Bridge br-int datapath_type")).To(Equal(datapath()))
		}
	}, SpecTimeout(20*time.Minute))

	It("reach each other through Geneve", func(ctx SpecContext) {
		createGuests(ctx)
		for _, g := range guests {
			g.plug(ctx)
		}
		connected(ctx)
		tunnels, err := hosts[0].Console(ctx, `ovs-vsctl --bare --columns=options find Interface type=geneve`)
		Expect(err).NotTo(HaveOccurred())
		Expect(tunnels).To(ContainSubstring("remote_ip=" + tenantAddress(hosts[1])))
	}, SpecTimeout(5*time.Minute))

	It("read their own instance id from the metadata service", func(ctx SpecContext) {
		informed(ctx)
	}, SpecTimeout(12*time.Minute))
}

// changeStories have agents that are replaced while guests use what they made.
func changeStories() {
	It("restarts ovn-controller, and hardly a packet is lost", func(ctx SpecContext) {
		stop := guests[0].pings(ctx, guests[1])
		for _, h := range hosts {
			_, err := h.SSH(ctx, "systemctl restart edpm_ovn_controller")
			Expect(err).NotTo(HaveOccurred())
		}
		Eventually(registered).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal([]string{hosts[0].Name, hosts[1].Name}))
		time.Sleep(10 * time.Second) // longer than ovn-controller keeps the flows of the one before
		sent, lost := stop()
		GinkgoWriter.Printf("%d of %d packets were lost while ovn-controller was restarted on both hosts\n", lost, sent)
		AddReportEntry("lost packets", lost)
		Expect(sent).To(BeNumerically(">=", 50))
		Expect(lost).To(BeNumerically("<=", sent/50))
	}, SpecTimeout(4*time.Minute))

	It("follows Open vSwitch when that is restarted, also with the unit that Red Hat has", func(ctx SpecContext) {
		for _, h := range hosts {
			_, err := h.SSH(ctx, `cd /run/systemd/system && mkdir -p ovsdb-server.service.d && printf '[Service]\nRuntimeDirectoryPreserve=no\n' > ovsdb-server.service.d/10-redhat.conf
systemctl daemon-reload && systemctl restart openvswitch-switch`)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, h := range hosts {
			for _, container := range []string{"edpm_ovn_controller", "edpm_ovn_metadata_agent"} {
				Eventually(h.Console).WithArguments(ctx, "podman exec "+container+" ovs-vsctl --timeout=5 br-exists br-int && echo yes").
					WithTimeout(time.Minute).Should(Equal("yes"), "%s of %s reaches Open vSwitch", container, h.Name)
			}
		}
		connected(ctx)
		informed(ctx)
	}, SpecTimeout(8*time.Minute))

	It("updates the image of the agents, with its haproxy", func(ctx SpecContext) {
		before := map[string]string{}
		for _, h := range hosts {
			before[h.Name] = haproxy(ctx, h)
			_, err := h.SSH(ctx, `printf 'FROM localhost/edpm-ovn:latest\nLABEL release=next\n' | podman build --quiet --pull=never --network=none --tag `+nextImage+` --file - /tmp`)
			Expect(err).NotTo(HaveOccurred())
			Expect(change(ctx, ovnController(h), func(o *neutronv1.OVNController) { o.Spec.ContainerImage = nextImage })).To(Succeed())
			Expect(change(ctx, agent(h), func(a *neutronv1.OVNMetadataAgent) { a.Spec.ContainerImage = nextImage })).To(Succeed())
		}
		for _, h := range hosts {
			for _, container := range []string{"edpm_ovn_controller", "edpm_ovn_metadata_agent"} {
				Eventually(imageOf).WithArguments(ctx, h, container).WithTimeout(5 * time.Minute).Should(Equal(nextImage))
			}
		}
		ready(ctx)
		informed(ctx)
		connected(ctx)
		for _, h := range hosts {
			Expect(haproxy(ctx, h)).NotTo(Or(BeEmpty(), Equal(before[h.Name])), "haproxy of %s", h.Name)
		}
	}, SpecTimeout(12*time.Minute))

	It("configures the running agent with customServiceConfig", func(ctx SpecContext) {
		for _, h := range hosts {
			Expect(change(ctx, agent(h), func(a *neutronv1.OVNMetadataAgent) { a.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = True\n" })).To(Succeed())
		}
		for _, h := range hosts {
			// The agent prints all its options when it starts with this one.
			Eventually(h.Console).WithArguments(ctx, `journalctl --no-pager --output cat --identifier edpm_ovn_metadata_agent`).
				WithTimeout(5 * time.Minute).Should(MatchRegexp(`DEBUG .* debug += True`))
		}
		ready(ctx)
		informed(ctx)
		connected(ctx)
	}, SpecTimeout(10*time.Minute))
}

// lifeStories have a host that is removed, and comes back.
func lifeStories() {
	It("stays while a guest is connected", func(ctx SpecContext) {
		Expect(k8s.Delete(ctx, node(hosts[1]))).To(Succeed())
		Eventually(func() (string, error) {
			obj, err := expect.Read(ctx, k8s, agent(hosts[1]))()
			return expect.Describe(obj), err
		}).WithTimeout(4 * time.Minute).Should(ContainSubstring("1 interfaces of guests are in Open vSwitch of this host: tap-guest-1"))
		Expect(guests[0].ping(ctx, guests[1])).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("leaves nothing in OVN, in neutron and on its host when it is removed", func(ctx SpecContext) {
		guests[1].unplug(ctx)
		rerun(ctx, hosts[1])
		Eventually(missing).WithArguments(ctx, node(hosts[1])).WithTimeout(10 * time.Minute).Should(BeTrue())

		Expect(registered(ctx)).To(Equal([]string{hosts[0].Name}))
		private, err := controller.Console(ctx, "ovn-sbctl --bare --columns=name list Chassis_Private | grep -c .")
		Expect(err).NotTo(HaveOccurred())
		Expect(private).To(Equal("1"), "rows of Chassis_Private")
		Expect(agents(ctx)).To(Equal(agentsOf(hosts[0])))
		bridges := "br-tenant" // of the lab
		if lab.OnVMs() {
			bridges = ""
		}
		left, err := hosts[1].Console(ctx, `ip netns; ls -d /sys/class/net/tap* /sys/class/net/br-int /etc/systemd/system/*ovn* /var/lib/openstack/ovn* 2>/dev/null
ovs-vsctl list-br; ovs-vsctl get Open_vSwitch . external_ids | grep -o ovn-remote; podman ps --all --quiet`)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(Equal(bridges))
		Eventually(guests[0].active).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal("ACTIVE"))
	}, SpecTimeout(14*time.Minute))

	It("returns under its name, with its guest", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, node(hosts[1]))).To(Succeed())
		Eventually(func() bool { return !missing(ctx, agent(hosts[1])) }).WithTimeout(5 * time.Minute).Should(BeTrue())
		ready(ctx)
		guests[1].plug(ctx)
		connected(ctx)
		informed(ctx)
		Expect(agents(ctx)).To(HaveLen(4))
	}, SpecTimeout(15*time.Minute))
}

// connected waits until both guests reach each other. The first packet to a new peer is
// lost, while Open vSwitch resolves its address.
func connected(ctx context.Context) {
	GinkgoHelper()
	for i, g := range guests {
		Eventually(g.ping).WithArguments(ctx, guests[1-i]).WithTimeout(time.Minute).Should(Succeed(), "%s reaches the other guest", g.name)
	}
}

// informed waits until both guests read their own instance id, and nothing else.
func informed(ctx context.Context) {
	GinkgoHelper()
	for _, g := range guests {
		Eventually(g.metadata).WithArguments(ctx).WithTimeout(5*time.Minute).Should(ContainSubstring(`"uuid": "`+g.instance+`"`), "metadata of %s", g.name)
	}
}

// ready waits until both services of both hosts are.
func ready(ctx context.Context) {
	GinkgoHelper()
	for _, h := range hosts {
		Eventually(expect.Read(ctx, k8s, ovnController(h))).WithTimeout(8 * time.Minute).Should(expect.Ready())
		Eventually(expect.Read(ctx, k8s, agent(h))).WithTimeout(4 * time.Minute).Should(expect.Ready())
	}
}

// agents returns the agents that neutron has, dead ones too.
func agents(ctx context.Context) ([]string, error) {
	out, err := cluster.OpenStack(ctx, "network", "agent", "list", "--format", "json")
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Host string
		Type string `json:"Agent Type"`
	}
	err = json.Unmarshal([]byte(out), &rows)
	var all []string
	for _, row := range rows {
		all = append(all, row.Host+" "+row.Type)
	}
	slices.Sort(all)
	return all, err
}

// agentsOf are those that a host has.
func agentsOf(h lab.Host) []string {
	return []string{h.Name + " OVN Controller agent", h.Name + " OVN Metadata agent"}
}

// registered returns the hosts of the chassis in the south bound database.
func registered(ctx context.Context) ([]string, error) {
	out, err := controller.Console(ctx, "ovn-sbctl --bare --columns=hostname list Chassis")
	names := strings.Fields(out)
	slices.Sort(names)
	return names, err
}

// haproxy returns when that of the guest's network was started, in the container of the
// agent.
func haproxy(ctx context.Context, h lab.Host) string {
	GinkgoHelper()
	out, err := h.Console(ctx, "podman exec edpm_ovn_metadata_agent ps -o lstart= -C haproxy")
	Expect(err).NotTo(HaveOccurred())
	return out
}

func imageOf(ctx context.Context, h lab.Host, container string) (string, error) {
	return h.Console(ctx, "podman container inspect --format '{{.ImageName}}' "+container)
}

// rerun has the removal of the agent tried at once.
func rerun(ctx context.Context, h lab.Host) {
	GinkgoHelper()
	Expect(change(ctx, node(h), func(n *dataplanev1.OpenStackDataPlaneNode) {
		n.Annotations = map[string]string{common.RerunAnnotation: "unplugged"}
	})).To(Succeed())
}
