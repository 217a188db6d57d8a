package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// program is the name by which kubectl finds the plugin.
const program = "kubectl-edpm"

// target is a platform that the plugin is built for.
type target struct{ OS, Arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// archive is the name of the file for the target.
func (t target) archive() string { return fmt.Sprintf("%s_%s_%s.tar.gz", program, t.OS, t.Arch) }

// manifest of a plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	Sha256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
	Files    []file   `json:"files"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type file struct {
	From string `json:"from"`
	To   string `json:"to"`
}

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
	m := manifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: metadata{"edpm"}, Spec: spec{
		Version: version, Homepage: "https://github.com/edpm-operators/edpm-operators",
		ShortDescription: "Look at OpenStack on EDPM nodes and in pods",
		Description: "Shows how external data plane nodes stand and why they are not ready, what\n" +
			"Ansible said of one host, what conditions mean, where pods of services are and\n" +
			"where a Topology would put them; runs steps again; and collects what is needed\n" +
			"to look into a problem, without secrets.\n",
	}}
	for _, t := range targets {
		if len(sums[t]) != 64 {
			return nil, fmt.Errorf("there is no checksum of %s", t.archive())
		}
		m.Spec.Platforms = append(m.Spec.Platforms, platform{
			Selector: selector{map[string]string{"os": t.OS, "arch": t.Arch}},
			URI:      strings.TrimSuffix(url, "/") + "/" + t.archive(), Sha256: sums[t],
			Bin: program, Files: []file{{program, "."}, {"LICENSE", "."}},
		})
	}
	return yaml.Marshal(m)
}
