package nodesets

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Print writes the objects as one YAML stream.
func Print(out io.Writer, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Write writes each object into a file of its own in a directory, which it makes. The names of
// files are in the order in which the objects should be applied. A file that exists is an error.
func Write(dir string, objects []*unstructured.Unstructured) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for i, o := range objects {
		name := fmt.Sprintf("%03d-%s-%s.yaml", i, strings.ToLower(o.GetKind()), o.GetName())
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640) //nolint:gosec // The directory is the person's.
		if err != nil {
			return fmt.Errorf("%w: give an empty directory", err)
		}
		if err := Print(file, objects[i:i+1]); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}
