package main

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/cluster"
)

func TestParseUp(t *testing.T) {
	more := cluster.Host{Name: "edpm-compute-2", IP: "192.168.122.110"}
	archive, err := filepath.Abs("x.tar")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		want  cluster.Options
		fails bool
	}{
		{"nothing asked: a node and the image for jobs", nil,
			cluster.Options{Kubelet: true, Images: []string{"ansibleee"}}, false},
		{"benchmarks", []string{"--no-kubelet", "--kwok-nodes", "100", "--images="},
			cluster.Options{KwokNodes: 100, Images: []string{}}, false},
		{"the default hosts and one more", []string{"--hosts", "--host", "edpm-compute-2=192.168.122.110", "--images=a,b"},
			cluster.Options{Kubelet: true, Hosts: append(cluster.DefaultHosts(), more), Images: []string{"a", "b"}}, false},
		{"an archive by a relative path", []string{"--images=", "--archive", "x.tar"},
			cluster.Options{Kubelet: true, Images: []string{}, Archives: []string{archive}}, false},
		{"nodes that are soon given up", []string{"--no-kubelet", "--images=", "--node-grace", "16s", "--eviction-grace", "5s"},
			cluster.Options{Images: []string{}, NodeGrace: 16 * time.Second, EvictionGrace: 5 * time.Second}, false},
		{"with OLM", []string{"--images=", "--olm"}, cluster.Options{Kubelet: true, Images: []string{}, OLM: true}, false},
		{"with OpenStack", []string{"--images=", "--openstack"}, cluster.Options{Kubelet: true, Images: []string{"nova"}, OpenStack: true}, false},
		{"with OVN, and nothing of nova", []string{"--images=", "--ovn"}, cluster.Options{Kubelet: true, Images: []string{}, OVN: true}, false},
		{"with a virtual machine", []string{"--images=", "--vms", "1"},
			cluster.Options{Kubelet: true, Images: []string{}, VMs: []cluster.Host{{Name: "edpm-vm-0", IP: "192.168.122.150"}}}, false},
		{"too many virtual machines", []string{"--vms", "51"}, cluster.Options{}, true},
		{"a grace that is none", []string{"--node-grace", "1s"}, cluster.Options{}, true},
		{"a host that is no host", []string{"--host", "x"}, cluster.Options{}, true},
		{"a forgotten dash", []string{"hosts"}, cluster.Options{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseUp(tc.args)
			if (err != nil) != tc.fails {
				t.Fatalf("error is %v, want one: %v", err, tc.fails)
			}
			if !tc.fails && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
