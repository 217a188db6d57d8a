package olm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	image     = "localhost/edpm-operators:latest"
	oldOne    = "edpm-operators.v0.1.0"
	newOne    = "edpm-operators.v0.2.0"
	olmNS     = "olm"
	userNS    = "e2e-olm"
	container = "edpm-operators-manager"
)

var (
	cluster *lab.Lab
	k8s     client.Client
	// dir has the bundles and the catalog.
	dir string
	// catalogAddress is where opm serves the catalog.
	catalogAddress string
	// systemNS is the namespace that the bundle suggests.
	systemNS string
)

// pretend reports whether KWOK plays the node.
func pretend() bool { return os.Getenv("E2E_OLM_PRETEND") == "1" }

// needPod skips what only a manager that runs can show.
func needPod() {
	GinkgoHelper()
	if pretend() {
		Skip("E2E_OLM_PRETEND=1: the manager's pod is not real")
	}
}

func TestOLM(t *testing.T) {
	lab.SkipUnless(t, "E2E_OLM", "OLM would have to be compiled, see the package's comment")
	if pretend() { // a lab of its own, beside one that may be up
		t.Setenv("EDPM_LAB_DIR", filepath.Join(t.TempDir(), "lab"))
		t.Setenv("EDPM_LAB_PORT_BASE", "28443")
	} else {
		lab.Reserve(t) // which needs root
	}
	lab.SetUpGinkgo()
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	RunSpecs(t, "edpm-operators installed by OLM")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir = GinkgoT().TempDir()
	cluster = lab.ForSuite(ctx, dir)

	By("building OLM, and bringing the lab up")
	DeferCleanup(cluster.TakeDown)
	flags := []string{"--olm", "--images", "ansibleee"}
	if pretend() {
		flags = []string{"--olm", "--no-kubelet", "--kwok-nodes", "1"}
	}
	Expect(cluster.UpWith(ctx, GinkgoWriter, flags...)).To(Succeed())
	k8s = cluster.Client
	if !pretend() {
		By("building the manager")
		_, err := cluster.Run(ctx, "make", "--silent", "image-manager", "IMG="+image)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Load(ctx, "bin/manager.tar")).To(Succeed())
	}

	By("making two bundles, the second to replace the first")
	makeBundle(ctx, "0.1.0", "VERSION=0.1.0")
	makeBundle(ctx, "0.2.0", "VERSION=0.2.0", "REPLACES=0.1.0")
	makeNamespaces(ctx)
	serveCatalog(ctx, []string{"0.1.0"})
}, NodeTimeout(25*time.Minute))

// bundleDir is where the bundle of a name is.
func bundleDir(name string) string { return filepath.Join(dir, "bundle-"+name) }

// makeBundle makes a bundle with the variables of hack/bundle.sh.
func makeBundle(ctx context.Context, name string, variables ...string) {
	GinkgoHelper()
	args := append([]string{"-u", "OPERATORS", "-u", "PACKAGE", "-u", "CHANNEL", "-u", "REPLACES", "IMG=" + image, "RUNNER_IMG=localhost/edpm-ansibleee:latest"}, variables...)
	_, err := cluster.Run(ctx, "env", append(args, "hack/bundle.sh", "bundle", bundleDir(name))...)
	Expect(err).NotTo(HaveOccurred())
}

// serveCatalog makes a catalog of packages, of which the names of the bundles are
// given, the newest last, and serves it instead of the one that is served.
func serveCatalog(ctx context.Context, packages ...[]string) {
	GinkgoHelper()
	catalog := filepath.Join(dir, "catalog")
	Expect(os.RemoveAll(catalog)).To(Succeed())
	for _, bundles := range packages {
		args := []string{"catalog", catalog}
		for _, name := range bundles {
			args = append(args, bundleDir(name))
		}
		_, err := cluster.Run(ctx, "hack/bundle.sh", args...)
		Expect(err).NotTo(HaveOccurred())
	}
	var err error
	catalogAddress, err = cluster.Catalog(ctx, catalog)
	Expect(err).NotTo(HaveOccurred())
}

// makeNamespaces makes that of the operators as the bundle suggests, which the
// console of OpenShift does, and one for a user's objects.
func makeNamespaces(ctx context.Context) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(bundleDir("0.1.0"), "manifests", "edpm-operators.clusterserviceversion.yaml"))
	Expect(err).NotTo(HaveOccurred())
	csv := &metav1.PartialObjectMetadata{}
	Expect(yaml.Unmarshal(text, csv)).To(Succeed())
	system := &corev1.Namespace{}
	Expect(yaml.UnmarshalStrict([]byte(csv.Annotations["operatorframework.io/suggested-namespace-template"]), system)).To(Succeed())
	systemNS = system.Name
	Expect(systemNS).To(Equal(csv.Annotations["operatorframework.io/suggested-namespace"]))
	for _, ns := range []*corev1.Namespace{system, {ObjectMeta: metav1.ObjectMeta{Name: userNS}}} {
		Expect(k8s.Create(ctx, ns)).To(Succeed(), "%s is there: take the lab down first", ns.Name)
	}
}

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(time.Minute))
