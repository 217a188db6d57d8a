// Command conditions makes the tables of conditions in docs/ from
// internal/conditions.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/edpm-operators/edpm-operators/internal/conditions"
)

func main() {
	if err := write("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
		os.Exit(1)
	}
}

// write makes the page with all reasons, and the tables of all other pages.
func write(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := remake(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(filepath.Join(dir, "conditions-reference.md"), []byte(conditions.Reference()), 0o644)
}

func remake(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	made, err := conditions.Page(string(text))
	if err != nil || made == string(text) {
		return err
	}
	return os.WriteFile(file, []byte(made), 0o644)
}
