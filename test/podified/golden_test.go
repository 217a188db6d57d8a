package podified_test

import (
	"flag"
	"os"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files of what is stored")

// The pods of every service roll out when the stored template differs in a single
// field, or when a field of the configuration does. So that no update of a library
// does that by accident, what is stored is compared with what was. Where a
// difference is meant, say so in the release notes, and write the files again:
//
//	go test ./test/podified -update -ginkgo.focus "is stored as in earlier versions"
var _ = Describe("The StatefulSet of a service", func() {
	It("stays as in earlier versions", func() {
		w := newWorld()
		w.apply(cellSecrets)
		w.apply(spread("spread", "zone"))
		w.apply(glance(`
  storage: {storageRequest: 1G, storageClass: ` + storageClass + `}
  glanceAPIs: {default: {replicas: 2, nodeSelector: {zone: zoneA}, customServiceConfig: "[DEFAULT]\ndebug = true\n"}, edge: {type: edge, storage: {external: true}, topologyRef: {name: spread}}}`))
		w.apply(cell(database))
		w.apply("apiVersion: nova.openstack.org/v1beta1\nkind: NovaCompute\nmetadata: {name: nova-cell1-fake}\nspec: {cellName: nova-cell1, computeDriver: fake.FakeDriver, topologyRef: {name: spread}}")
		for _, name := range []string{"glance-default-single", "glance-edge-edge-api", "nova-cell1-conductor", "nova-cell1-fake"} {
			set := &unstructured.Unstructured{}
			set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
			set.SetNamespace(string(w))
			set.SetName(name)
			Eventually(func(g Gomega) { get(g, set) }).Should(Succeed())
			w.compareWithFile(set)
		}
	})
})

// compareWithFile compares the spec of a set, as it is stored, with a file.
func (w world) compareWithFile(set *unstructured.Unstructured) {
	GinkgoHelper()
	text, err := yaml.Marshal(set.Object["spec"])
	Expect(err).NotTo(HaveOccurred())
	got, file := strings.ReplaceAll(string(text), string(w), "NAMESPACE"), "testdata/"+set.GetName()+".yaml"
	if *update {
		Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(cmp.Diff(string(want), got)).To(BeEmpty(), "%s differs (-want +got): its pods would be replaced", set.GetName())
}
