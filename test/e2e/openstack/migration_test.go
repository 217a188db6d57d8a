package openstack

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const pki = "/var/lib/libvirt/pki"

// moveStories have the guest move between two computes of a cell.
func moveStories(other func() lab.Host) {
	It("reach one another", func(ctx SpecContext) {
		for _, host := range []lab.Host{compute, other()} {
			becomesReady(ctx, host.Name)
		}
		for _, host := range []lab.Host{compute, other()} {
			reaches(ctx, host)
		}
	}, SpecTimeout(20*time.Minute))

	It("refuse what has no certificate of libvirt, such as QEMU, and others as well", func(ctx SpecContext) {
		handshake := "timeout 20 openssl s_client -connect " + compute.IP + ":16514 -CAfile " + pki + "/CA/cacert.pem -quiet "
		Expect(other().SSH(ctx, handshake+"-cert "+pki+"/libvirt/clientcert.pem -key "+pki+"/libvirt/private/clientkey.pem -verify_return_error </dev/null | od -An -c | head -n 1")).To(ContainSubstring("001"))
		for _, without := range []string{"", "-cert " + pki + "/qemu/client-cert.pem -key " + pki + "/qemu/client-key.pem "} {
			Expect(other().SSH(ctx, handshake+without+"</dev/null 2>/dev/null | od -An -c | head -n 1")).NotTo(ContainSubstring("001"), without)
		}
		_, err := net.DialTimeout("tcp", compute.IP+":16514", 3*time.Second)
		Expect(err).To(HaveOccurred(), "the machine is no compute")
	}, SpecTimeout(2*time.Minute))

	It("move a guest and its disk, which continues, with nothing in clear text", func(ctx SpecContext) {
		before, err := boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		sent := capture(ctx, compute.IP, other().IP)
		move(ctx, other())
		Expect(hostOfGuest(ctx)).To(Equal(other().Name))
		seen := sent()
		Expect(len(seen)).To(BeNumerically(">", 1<<20), "what was sent")
		Expect(bytes.Contains(seen, []byte("uptime: "))).To(BeFalse(), "memory of the guest in clear text")
		Expect(bytes.Contains(seen, []byte(guestLine))).To(BeFalse(), "the disk of the guest in clear text")
		Eventually(boot).WithArguments(ctx).WithTimeout(2*time.Minute).Should(Equal(before), "the guest was started again")
	}, SpecTimeout(12*time.Minute))

	It("refuse a certificate of another authority, and the guest stays", func(ctx SpecContext) {
		foreign(ctx, compute)
		out, _ := cluster.OpenStack(ctx, "--os-compute-api-version", "2.30", "server", "migrate", "--live-migration", "--host", compute.Name, "--wait", guest)
		Eventually(migrations).WithArguments(ctx).WithTimeout(4*time.Minute).Should(ContainElement(Or(Equal("failed"), Equal("error"))), out)
		Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(Equal("ACTIVE"))
		Expect(hostOfGuest(ctx)).To(Equal(other().Name))
		rerun(ctx, "its own certificate")
		reaches(ctx, compute)
	}, SpecTimeout(15*time.Minute))

	It("get other certificates without a restart, and move the guest back", func(ctx SpecContext) {
		before := started(ctx, other())
		shown, err := certificateOf(ctx, other())
		Expect(err).NotTo(HaveOccurred())
		authority, err := certificates.NewAuthority("story", time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Create(ctx, secret("story-issuer", map[string]string{"tls.crt": string(authority["tls.crt"]), "tls.key": string(authority["tls.key"])}))).To(Succeed())
		Expect(change(ctx, nova(), func(n *novav1.Nova) {
			cell := n.Spec.CellTemplates["cell1"]
			cell.MigrationCASecretName = "story-issuer"
			n.Spec.CellTemplates["cell1"] = cell
		})).To(Succeed())
		Eventually(certificateOf).WithArguments(ctx, other()).WithTimeout(6 * time.Minute).ShouldNot(Equal(shown))
		Expect(started(ctx, other())).To(Equal(before), "units and the process of the guest")
		for _, host := range []lab.Host{compute, other()} {
			reaches(ctx, host)
		}
		move(ctx, compute)
		Expect(hostOfGuest(ctx)).To(Equal(compute.Name))
	}, SpecTimeout(20*time.Minute))
}

// reaches waits until a compute reaches the others of its cell.
func reaches(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	obj := &novav1.NovaExternalCompute{ObjectMeta: named(host.Name)}
	Eventually(func() (bool, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return obj.Status.Conditions.IsTrue(novav1.LiveMigrationReadyCondition), err
	}).WithTimeout(6*time.Minute).Should(BeTrue(), "%s: %+v", host.Name, &obj.Status)
}

// move moves the guest to a host, and waits until that is completed.
func move(ctx context.Context, to lab.Host) {
	GinkgoHelper()
	openstack(ctx, "--os-compute-api-version", "2.30", "server", "migrate", "--live-migration", "--host", to.Name, "--wait", guest)
	Eventually(migrations).WithArguments(ctx).WithTimeout(8 * time.Minute).Should(ContainElement("completed"))
	Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(Equal("ACTIVE"))
	Eventually(hostOfGuest).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal(to.Name))
}

// migrations are the states of those of the guest.
func migrations(ctx context.Context) ([]string, error) {
	out, err := cluster.OpenStack(ctx, "--os-compute-api-version", "2.23", "server", "migration", "list", "--server", guest, "--format", "json")
	if err != nil {
		return nil, err
	}
	var found []struct{ Status string }
	err = json.Unmarshal([]byte(out), &found)
	states := make([]string, 0, len(found))
	for _, m := range found {
		states = append(states, m.Status)
	}
	return states, err
}

func hostOfGuest(ctx context.Context) (string, error) {
	return cluster.OpenStack(ctx, "server", "show", guest, "--format", "value", "--column", "OS-EXT-SRV-ATTR:host")
}

// started is when the services of a host were started, and which guests it has.
func started(ctx context.Context, host lab.Host) string {
	GinkgoHelper()
	out, err := host.SSH(ctx, "systemctl show --property=Id,ActiveEnterTimestampMonotonic 'edpm_*.service'; pgrep -f 'qemu-system.*guest='")
	Expect(err).NotTo(HaveOccurred())
	return out
}

// certificateOf is the certificate that libvirt shows on a host.
func certificateOf(ctx context.Context, host lab.Host) (string, error) {
	return host.SSH(ctx, "openssl s_client -connect "+host.IP+":16514 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint")
}

// foreign gives a host a certificate of another authority.
func foreign(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	_, err := host.SSH(ctx, fmt.Sprintf(`set -e; cd %s; umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=foreign -addext basicConstraints=critical,CA:FALSE -addext 'subjectAltName=IP:%s' -keyout /tmp/foreign.key -out /tmp/foreign.crt 2>/dev/null
for name in server client; do
  cat /tmp/foreign.crt >libvirt/${name}cert.pem; cat /tmp/foreign.key >libvirt/private/${name}key.pem
  cat /tmp/foreign.crt >qemu/$name-cert.pem; cat /tmp/foreign.key >qemu/$name-key.pem
done
podman exec edpm_libvirt_libvirtd virt-admin --connect libvirtd:///system server-update-tls libvirtd || true # it may refuse it itself`, pki, host.IP))
	Expect(err).NotTo(HaveOccurred())
}

// capture records what crosses the network of the lab between two hosts at the ports of live
// migration. The function returns it.
func capture(ctx context.Context, one, other string) func() []byte {
	GinkgoHelper()
	const all = 0x0300 // ETH_P_ALL in network byte order
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, all)
	Expect(err).NotTo(HaveOccurred())
	Expect(syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 1})).To(Succeed())
	_ = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, 64<<20)
	background, stop := context.WithCancel(ctx)
	var seen bytes.Buffer
	var done sync.WaitGroup
	done.Go(func() {
		packet := make([]byte, 1<<16)
		for background.Err() == nil {
			if n, err := syscall.Read(socket, packet); err == nil {
				seen.Write(payload(packet[:n], one, other))
			}
		}
	})
	return func() []byte {
		stop()
		done.Wait()
		_ = syscall.Close(socket)
		return seen.Bytes()
	}
}

// payload is what an IPv4 packet between two hosts has for a port of live migration.
func payload(packet []byte, one, other string) []byte {
	if len(packet) < 40 || packet[0]>>4 != 4 || packet[9] != syscall.IPPROTO_TCP {
		return nil
	}
	from, to := net.IP(packet[12:16]).String(), net.IP(packet[16:20]).String()
	if !strings.Contains(one+" "+other, from) || !strings.Contains(one+" "+other, to) || from == to {
		return nil
	}
	segment := packet[int(packet[0]&15)*4:]
	if len(segment) < 20 {
		return nil
	}
	for _, port := range []uint16{binary.BigEndian.Uint16(segment), binary.BigEndian.Uint16(segment[2:])} {
		if offset := int(segment[12]>>4) * 4; (port == 16514 || port >= 61152 && port <= 61215) && offset <= len(segment) {
			return segment[offset:]
		}
	}
	return nil
}
