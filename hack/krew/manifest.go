package main

import (
	"bytes"
	_ "embed" // the manifest
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// program is the name by which kubectl finds the plugin.
const program = "kubectl-edpm"

// target is a platform that the plugin is built for.
type target struct{ OS, Arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Archive is the name of the file for the target.
func (t target) Archive() string { return fmt.Sprintf("%s_%s_%s.tar.gz", program, t.OS, t.Arch) }

//go:embed edpm.yaml.tmpl
var manifest string

// semver as krew wants it: with a v.
var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// check tells what is wrong with a version or an address, before anything is built.
func check(version, url string) error {
	if !semver.MatchString(version) {
		return fmt.Errorf("version %q is none that krew takes: write it like v1.2.3", version)
	}
	if !strings.HasPrefix(url, "https://") {
		return fmt.Errorf("URL %q: it has to begin with https://", url)
	}
	return nil
}

// newManifest returns the manifest for archives at the URL with the given sums.
func newManifest(version, url string, sums map[target]string) ([]byte, error) {
	for _, t := range targets {
		if len(sums[t]) != 64 {
			return nil, fmt.Errorf("there is no checksum of %s", t.Archive())
		}
	}
	var text bytes.Buffer
	values := map[string]any{"Version": version, "URL": strings.TrimSuffix(url, "/"), "Targets": targets, "Sums": sums}
	err := template.Must(template.New(program).Parse(manifest)).Execute(&text, values)
	return text.Bytes(), err
}
