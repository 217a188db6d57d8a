package tempest

import (
	"context"
	"os"
	"path/filepath"
	"text/template"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// enough is the part of the included tests that must pass.
const enough = 0.95

// script runs the tests that are not excluded, in a directory that Tempest prepares. It ends with 1
// if any of them fails.
const script = `cd /work && tempest init run >&2 && cp tempest.conf run/etc/ && cd run &&
tempest run --regex '^tempest\.api\.compute\.' --exclude-list ../excluded.txt --concurrency 2 || [ $? = 1 ]`

var _ = Describe("Tempest", Ordered, func() {
	It("finds nova Ready with two computes that have OVN", func(ctx SpecContext) {
		describe(ctx)
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(15 * time.Minute).Should(expect.Ready())
		for _, h := range computes {
			Eventually(expect.Read(ctx, k8s, &neutronv1.OVNController{ObjectMeta: named(h.Name)})).WithTimeout(15 * time.Minute).Should(expect.Ready())
			Eventually(expect.Read(ctx, k8s, &novav1.NovaExternalCompute{ObjectMeta: named(h.Name)})).WithTimeout(15 * time.Minute).Should(expect.Ready())
		}
	}, SpecTimeout(40*time.Minute))

	It("finds nothing of nova on the bus without TLS", func(ctx SpecContext) {
		Expect(inClear(ctx)).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("finds what it found before", func(ctx SpecContext) {
		before := recorded()
		now := parseTrace(run(ctx, prepare(ctx)))
		now.explainAs(before)
		keep(now)
		Expect(now.worse(before)).To(BeEmpty(), "tests that passed before")
		Expect(now.unexplained()).To(BeEmpty(), "tests that fail without a reason in testdata/results.txt")
		Expect(now.share()).To(BeNumerically(">=", enough), "the part of the tests that pass")
	}, SpecTimeout(90*time.Minute))
})

// recorded are the results that are kept in the project.
func recorded() results {
	GinkgoHelper()
	file, err := os.Open("testdata/results.txt")
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	found, err := readResults(file)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// keep writes results to where a person finds them.
func keep(now results) {
	GinkgoHelper()
	dir := filepath.Join(cluster.Root, "bin", "tempest")
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	file, err := os.Create(filepath.Join(dir, "results.txt"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	Expect(now.write(file)).To(Succeed())
}

// prepare makes what the tests use, and returns a directory with what Tempest reads.
func prepare(ctx context.Context) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	disk := filepath.Join(dir, "guest.img")
	Expect(os.WriteFile(disk, guest(), 0o600)).To(Succeed())
	values := map[string]string{
		"Controller": controller.IP,
		"Image":      image(ctx, "tempest", disk), "OtherImage": image(ctx, "tempest-other", disk),
		"Flavor": flavor(ctx, "tempest", "64"), "OtherFlavor": flavor(ctx, "tempest-other", "96"),
		"Filters": filters, "PublicNetwork": create(ctx, "network", "create", "--external", "public"),
	}
	create(ctx, "subnet", "create", "--network", "public", "--no-dhcp", "--subnet-range", "172.24.4.0/24", "public")

	conf, err := template.New("tempest.conf").Option("missingkey=error").ParseFiles("testdata/tempest.conf")
	Expect(err).NotTo(HaveOccurred())
	file, err := os.Create(filepath.Join(dir, "tempest.conf"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	Expect(conf.Execute(file, values)).To(Succeed())
	excluded, err := os.ReadFile("testdata/excluded.txt")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "excluded.txt"), excluded, 0o600)).To(Succeed())
	return dir
}

// image has a guest that does not answer its power button: nova is not to wait for that.
func image(ctx context.Context, name, disk string) string {
	GinkgoHelper()
	return create(ctx, "image", "create", "--public", "--disk-format", "raw", "--container-format", "bare",
		"--file", disk, "--property", "os_shutdown_timeout=1", name)
}

func flavor(ctx context.Context, name, ram string) string {
	GinkgoHelper()
	return create(ctx, "flavor", "create", "--vcpus", "1", "--ram", ram, "--disk", "1", name)
}

// create returns the id of what the program openstack creates.
func create(ctx context.Context, args ...string) string {
	GinkgoHelper()
	id, err := cluster.OpenStack(ctx, append(args, "--format", "value", "--column", "id")...)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// run returns what Tempest prints.
func run(ctx context.Context, dir string) string {
	GinkgoHelper()
	archive, err := cluster.Run(ctx, "test/lab/images/build.sh", "tempest")
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.Run(ctx, "podman", "load", "--quiet", "--input", archive)
	Expect(err).NotTo(HaveOccurred())
	// podman's own limits are higher than what some machines allow.
	const podman = `limit=$(ulimit -Hn) && exec podman --runtime runc run --rm --network host --ulimit "nofile=$limit:$limit" --ulimit nproc=16384:16384 \
--volume "$0:/work" localhost/edpm-tempest:latest sh -c "$1"`
	out, err := cluster.Run(ctx, "bash", "-c", podman, dir, script)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// guest is a disk whose boot sector prints a line to the console every ten seconds, and does
// nothing else: no time goes into guests. nova takes no disk for a disk that has no partition.
func guest() []byte {
	const line = "guest: is up\r\n\x00"
	boot := []byte{
		0x31, 0xc0, // xor ax, ax
		0x8e, 0xd8, // mov ds, ax
		0xfb,             // sti
		0xbe, 0x1b, 0x7c, // again: mov si, line
		0xac,       // next: lodsb
		0x84, 0xc0, // test al, al
		0x74, 0x06, // jz wait
		0xba, 0xf8, 0x03, // mov dx, 0x3f8
		0xee,       // out dx, al
		0xeb, 0xf5, // jmp next
		0xb9, 0xb6, 0x00, // wait: mov cx, 182
		0xf4,       // tick: hlt
		0xe2, 0xfd, // loop tick
		0xeb, 0xea, // jmp again
	}
	disk := make([]byte, 1<<20)
	copy(disk, append(boot, line...))
	copy(disk[446:], []byte{0x80, 0, 2, 0, 0x83, 0, 1, 0, 1, 0, 0, 0, 0xff, 0x07}) // the first partition
	copy(disk[510:], []byte{0x55, 0xaa})
	return disk
}
