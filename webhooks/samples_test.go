package webhooks_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

var documentSeparator = regexp.MustCompile(`(?m)^---\n`)

func splitYAML(text []byte) [][]byte {
	var docs [][]byte
	for _, doc := range documentSeparator.Split(string(text), -1) {
		docs = append(docs, []byte(doc))
	}
	return docs
}

// resources returns the files that config/<dir>/kustomization.yaml lists, and those of
// the directories that it lists, as paths from config/<dir>.
func resources(dir string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(envtest.File("config", dir, "kustomization.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var kustomization struct{ Resources []string }
	Expect(yaml.Unmarshal(text, &kustomization)).To(Succeed())
	var files []string
	for _, r := range kustomization.Resources {
		if filepath.Ext(r) == ".yaml" {
			files = append(files, r)
			continue
		}
		for _, file := range resources(filepath.Join(dir, r)) {
			files = append(files, filepath.Join(r, file))
		}
	}
	return files
}

// apply sends a sample as it is, so that the API server's strict decoder sees
// what a person wrote.
func (w world) apply(file string) error {
	GinkgoHelper()
	return w.applyFile(envtest.File("config", "samples", file))
}

func (w world) applyFile(path string) error {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(text, &obj.Object)).To(Succeed())
	obj.SetNamespace(string(w))
	return api.Patch(ctx, obj, client.RawPatch(types.ApplyYAMLPatchType, bytes.TrimSpace(text)),
		client.FieldOwner("person"), client.FieldValidation(metav1.FieldValidationStrict))
}

var _ = Describe("The examples of the specification", func() {
	It("apply as they are, in any order, with strict field validation", func() {
		files := resources("samples")
		Expect(files).To(HaveLen(13))
		onDisk, err := filepath.Glob(envtest.File("config", "samples", "*_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(onDisk).To(HaveLen(len(files)), "every sample is listed")

		forward, backward := newWorld(), newWorld()
		for i := range files {
			Expect(forward.apply(files[i])).To(Succeed(), files[i])
			Expect(backward.apply(files[len(files)-1-i])).To(Succeed(), files[len(files)-1-i])
		}
	})

	It("put edpm-compute-0 in the cell of its role and edpm-compute-1 in its own", func() {
		w := newWorld()
		for _, file := range resources("samples") {
			Expect(w.apply(file)).To(Succeed())
		}
		role := w.newRole("edpm-compute", "-")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		for name, cell := range map[string]string{"edpm-compute-0": "nova-cell1", "edpm-compute-1": "nova-cell2"} {
			node := &dataplanev1.OpenStackDataPlaneNode{}
			Expect(api.Get(ctx, client.ObjectKey{Namespace: string(w), Name: name}, node)).To(Succeed())
			Expect(inherit.Annotation(node, role, novav1.CellAnnotation)).To(Equal(cell))
		}
	})
})

var _ = Describe("The examples that only the bundle has", func() {
	It("apply as they are, with strict field validation", func() {
		w := newWorld()
		files := resources(filepath.Join("olm", "examples"))
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			Expect(w.applyFile(envtest.File("config", "olm", "examples", file))).To(Succeed(), file)
		}
	})
})

var _ = Describe("The example of a storage cluster", func() {
	It("applies with strict field validation", func() {
		w := newWorld()
		for _, file := range resources(filepath.Join("samples", "ocs")) {
			Expect(w.apply(filepath.Join("ocs", file))).To(Succeed())
		}
	})
})

var _ = Describe("The examples of services without Go", func() {
	It("apply with strict field validation", func() {
		w := newWorld()
		files := resources(filepath.Join("samples", "classes"))
		onDisk, err := filepath.Glob(envtest.File("config", "samples", "classes", "*_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(onDisk).To(HaveLen(len(files)), "every sample is listed")
		for _, file := range files {
			Expect(w.apply(filepath.Join("classes", file))).To(Succeed(), file)
		}
	})
})

var _ = Describe("The kustomization of resource definitions", func() {
	It("includes every kind", func() {
		var files []string
		for _, file := range resources("crd") {
			files = append(files, envtest.File("config", "crd", file))
		}
		generated, err := filepath.Glob(envtest.File("config", "crd", "bases", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(ConsistOf(generated))
	})
})
