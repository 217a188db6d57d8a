package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// goModule is a module that is compiled into a program.
type goModule struct {
	Path, Version string
	// Sum is the SHA-256 of its content as go.sum has it, in bytes.
	Sum []byte
	// Dir has its source.
	Dir string
	// Licenses by SPDX name, and the texts that say so.
	Licenses []string
	Texts    map[string]string
}

// standard is the module that the library of Go stands for.
const standard = "std"

// read returns the modules that are in the programs, by path; those of Go's own
// library among them, and not edpm-operators itself.
func read(programs []string) ([]*goModule, error) {
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	found := map[string]*goModule{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		root, err := goEnv("GOROOT")
		if err != nil {
			return nil, err
		}
		found[standard] = &goModule{Path: standard, Version: strings.TrimPrefix(info.GoVersion, "go"), Dir: root}
		for _, dep := range info.Deps {
			m, err := fromBuild(dep, cache)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
			found[m.Path] = m
		}
	}
	var all []*goModule
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *goModule) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

func fromBuild(dep *debug.Module, cache string) (*goModule, error) {
	if dep.Replace != nil {
		dep = dep.Replace
	}
	path, err := module.EscapePath(dep.Path)
	if err != nil {
		return nil, err
	}
	version, err := module.EscapeVersion(dep.Version)
	if err != nil {
		return nil, err
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(dep.Sum, "h1:"))
	if err != nil {
		return nil, fmt.Errorf("module %s: sum %q: %w", dep.Path, dep.Sum, err)
	}
	return &goModule{Path: dep.Path, Version: dep.Version, Sum: sum, Dir: filepath.Join(cache, path+"@"+version)}, nil
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
