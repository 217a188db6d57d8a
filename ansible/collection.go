// Package ansible has what Go needs to know of the collection edpm.operators in this directory: the variables of its roles.
package ansible

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Prefix is what the names of all variables of the collection begin with.
const Prefix = "edpm_"

// Variable is what the argument specification of a role says about a variable.
type Variable struct {
	// Type is str, path, int, bool, list or dict.
	Type string
	// Choices are the values that are allowed. Without any all are.
	Choices []string
}

// files are validated by Ansible too, before the first task of each role.
//
//go:embed roles/*/meta/argument_specs.yml
var files embed.FS

// Variables returns the variables of all roles by their names. The map is shared: do not change it.
var Variables = sync.OnceValue(func() map[string]Variable {
	all := map[string]Variable{}
	names, err := fs.Glob(files, "roles/*/meta/argument_specs.yml")
	for _, name := range names {
		var found map[string]Variable
		if found, err = variablesOf(name); err != nil {
			break
		}
		maps.Copy(all, found)
	}
	if err != nil {
		panic(err) // The files are part of the program.
	}
	return all
})

// variablesOf returns the options of all entry points in a file.
func variablesOf(name string) (map[string]Variable, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var file struct {
		EntryPoints map[string]struct{ Options map[string]Variable } `yaml:"argument_specs"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	all := map[string]Variable{}
	for _, entry := range file.EntryPoints {
		maps.Copy(all, entry.Options)
	}
	return all, nil
}
