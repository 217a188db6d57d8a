package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// runtime starts the lab's own containerd: the system's, if there is one, is
// neither used nor disturbed.
func (l *Lab) runtime(ctx context.Context, _ Options) error {
	if err := os.MkdirAll(l.containerdRoot(), 0o711); err != nil {
		return err
	}
	fresh := !l.procs.Known("containerd")
	err := l.run(ctx, l.containerd(), l.servesCRI)
	if err != nil || !fresh {
		return err
	}
	return l.forgetPast(ctx)
}

// servesCRI returns nil once containerd answers the kubelet's first request. It
// serves its own API before that, and a kubelet started in between ends.
func (l *Lab) servesCRI(ctx context.Context) error {
	conn, err := grpc.NewClient("unix://"+l.containerdSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = criv1.NewRuntimeServiceClient(conn).Version(ctx, &criv1.VersionRequest{})
	return err
}

func (l *Lab) containerd() proc.Component {
	binary, err := exec.LookPath("containerd")
	if err != nil {
		binary = "containerd" // preflight has told
	}
	config := l.path("conf", "containerd.toml")
	return proc.Component{
		Name: "containerd",
		Argv: []string{binary, "--config", config},
		Files: map[string]string{
			config: render("containerd.toml", map[string]string{
				"Root": l.containerdRoot(), "State": l.containerdState(), "Socket": l.containerdSocket(),
				"Opt": l.path("containerd", "opt"), "RuncRoot": l.path("containerd", "runc"),
				"CNIBin": cniBinDir(), "CNIConf": l.path("cni", "net.d"),
			}),
			l.path("cni", "net.d", "10-edpm-lab.conflist"): render("cni.conflist", map[string]string{
				"Name": cniNetwork, "Bridge": bridge, "DataDir": l.path("cni", "ipam"), "PodCIDR": podCIDR, "Gateway": nodeIP,
			}),
		},
	}
}

// forgetPast drops the containers of this lab's previous life, and images that
// newer ones of the same name replaced. Down keeps containerd's root for the
// images, and all this comes with it.
func (l *Lab) forgetPast(ctx context.Context) error {
	containers, err := l.ctr(ctx, "containers", "ls", "-q")
	if err != nil {
		return err
	}
	if err := l.ctrRemove(ctx, "containers", strings.Fields(containers)); err != nil {
		return err
	}
	images, err := l.ctr(ctx, "images", "ls")
	if err != nil {
		return err
	}
	return l.ctrRemove(ctx, "images", replacedImages(images))
}

func (l *Lab) ctrRemove(ctx context.Context, kind string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := l.ctr(ctx, append([]string{kind, "rm"}, ids...)...)
	return err
}

// replacedImages returns the entries of a `ctr images ls` listing that only an
// image ID refers to: the CRI plugin enters each image once by name and once by ID.
func replacedImages(listing string) []string {
	const ref, digest = 0, 2
	named := map[string]bool{}
	byID := map[string]string{}
	for line := range strings.Lines(listing) {
		fields := strings.Fields(line)
		switch {
		case len(fields) <= digest:
		case strings.HasPrefix(fields[ref], "sha256:"):
			byID[fields[ref]] = fields[digest]
		default:
			named[fields[digest]] = true
		}
	}
	maps.DeleteFunc(byID, func(_, digest string) bool { return named[digest] })
	return slices.Sorted(maps.Keys(byID))
}

func (l *Lab) ctr(ctx context.Context, args ...string) (string, error) {
	return command(ctx, "ctr", append([]string{"--address", l.containerdSocket(), "--namespace", "k8s.io"}, args...)...)
}

// kubelet starts the real node and waits until the cluster calls it Ready.
func (l *Lab) kubelet(ctx context.Context) error {
	kubeconfig, err := l.kubeconfigFor("kubelet")
	if err != nil {
		return err
	}
	api, err := l.api()
	if err != nil {
		return err
	}
	healthz := healthy(fmt.Sprintf("http://127.0.0.1:%d/healthz", l.kubeletHealthzPort()))
	if err := l.run(ctx, l.kubeletComponent(kubeconfig), healthz); err != nil {
		return err
	}
	return waitFor(ctx, "node "+NodeName, func(ctx context.Context) error {
		return api.nodeReady(ctx, NodeName)
	})
}

func (l *Lab) kubeletComponent(kubeconfig string) proc.Component {
	config, credentials := l.path("conf", "kubelet.yaml"), l.path("conf", "kubelet.kubeconfig")
	c := l.component("kubelet", l.kubeletPort(),
		"--config="+config, "--kubeconfig="+credentials,
		"--root-dir="+l.path("kubelet"),
		"--hostname-override="+NodeName, "--node-ip="+nodeIP,
		"--node-labels=topology.kubernetes.io/region=lab,topology.kubernetes.io/zone="+zone(0),
	)
	c.Files = map[string]string{
		credentials: kubeconfig,
		config: render("kubelet.yaml", map[string]string{
			"Port": strconv.Itoa(l.kubeletPort()), "HealthzPort": strconv.Itoa(l.kubeletHealthzPort()),
			"CA": l.path("pki", "ca.crt"), "Cert": l.path("pki", "kubelet.crt"), "Key": l.path("pki", "kubelet.key"),
			"Socket": l.containerdSocket(), "PodLogs": l.path("pod-logs"),
			"VolumePlugins": l.path("kubelet", "volume-plugins"), "NodeIP": nodeIP,
		}),
	}
	return c
}
