package cluster

import (
	"slices"
	"testing"
)

func TestStepsOfUp(t *testing.T) {
	for _, tc := range []struct {
		name         string
		options      Options
		want, absent []string
	}{
		{"without root", Options{KwokNodes: 100, Images: []string{"ansibleee"}},
			[]string{"executables", "control plane", "KWOK"}, []string{"image ansibleee", "node", "hosts", "OLM"}},
		{"a node", Options{Kubelet: true, Images: []string{"ansibleee"}},
			[]string{"image pause", "image ansibleee", "images for pods", "node"}, []string{"image nova", "hosts"}},
		{"hosts and OpenStack", Options{Kubelet: true, Images: []string{"nova", "glance"}, Hosts: DefaultHosts(), OpenStack: true},
			[]string{"image nova", "image glance", "image edpm-host", "image edpm-controller", "hosts"}, []string{"image ovn", "image edpm-machine"}},
		{"OVN", Options{Hosts: DefaultHosts(), OVN: true}, []string{"image ovn", "image edpm-controller"}, nil},
		{"machines", Options{Machines: true}, []string{"image edpm-machine", "image nova", "hosts"}, []string{"image edpm-host"}},
		{"OLM", Options{OLM: true}, []string{"executables of OLM", "OLM"}, nil},
	} {
		var names []string
		for _, step := range testLab(t).steps(tc.options) {
			if slices.Contains(names, step.Name) {
				t.Errorf("%s: step %s is there twice", tc.name, step.Name)
			}
			names = append(names, step.Name)
		}
		for _, step := range testLab(t).steps(tc.options) {
			for _, before := range step.After {
				if !slices.Contains(names, before) {
					t.Errorf("%s: %s comes after %s, which is no step", tc.name, step.Name, before)
				}
			}
		}
		for _, name := range tc.want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no step %s in %q", tc.name, name, names)
			}
		}
		for _, name := range tc.absent {
			if slices.Contains(names, name) {
				t.Errorf("%s: there is a step %s", tc.name, name)
			}
		}
	}
}
