package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pauseImage is what every pod's sandbox runs.
const pauseImage = "pause"

// Options say what a lab must have at least. Up adds and never takes away, but
// for the KWOK stages and the times, which are those of the latest up.
type Options struct {
	// Kubelet asks for a real node, KwokNodes for that many pretend ones.
	Kubelet   bool
	KwokNodes int
	// Stages are files of further KWOK stages.
	Stages []string
	// NodeGrace is after how long without a sign of life a node is NotReady, and
	// EvictionGrace after how long more its pods are evicted; 0 means as long as
	// Kubernetes takes by default, 50 s and 5 min.
	NodeGrace, EvictionGrace time.Duration
	// Audit asks for a log of what ServiceAccounts ask of the API server.
	Audit bool
	// Hosts are the EDPM hosts.
	Hosts []Host
	// OpenStack asks for the controller.
	OpenStack bool
	// OVN asks for the controller with neutron and OVN, and for the image of OVN's agents
	// on hosts that are not there yet.
	OVN bool
	// Machines asks for what machines need that are provisioned from bare metal.
	Machines bool
	// OLM asks for the Operator Lifecycle Manager.
	OLM bool
	// Images are names of test/lab/images for pods; Archives are docker
	// archives to import besides.
	Images, Archives []string
}

func (o Options) needsRoot() bool { return o.Kubelet || o.needsPodman() }

func (o Options) needsPodman() bool { return o.OpenStack || o.OVN || o.Machines || len(o.Hosts) > 0 }

// storeImages are names of test/lab/images, of what hosts run.
func (o Options) storeImages() []string {
	if o.OVN {
		return []string{"nova", "ovn"}
	}
	return []string{"nova"}
}

// Up brings the lab to what o asks for. It fixes what died, restarts what is
// configured otherwise, leaves alone what is well, and returns once all is ready.
func (l *Lab) Up(ctx context.Context, o Options) error {
	if err := l.Validate(); err != nil {
		return err
	}
	o.Kubelet = o.Kubelet || l.procs.Known("kubelet")
	if err := l.preflight(o); err != nil {
		return err
	}
	if err := l.adopt(); err != nil {
		return err
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.afterReboot(ctx); err != nil {
		return err
	}
	if err := l.startAll(ctx, o); err != nil {
		return err
	}
	l.summary(o)
	return nil
}

// afterReboot removes what is left of a lab that was up when the machine was rebooted.
// Its pods, mounts and network no longer exist, and what etcd has written may be lost
// in part: it was never flushed to the disk.
func (l *Lab) afterReboot(ctx context.Context) error {
	if !l.procs.Rebooted() {
		return nil
	}
	l.logf("The machine was rebooted while the lab was up: it starts again from scratch, with an empty cluster and new hosts")
	if err := l.remove(ctx); err != nil {
		return fmt.Errorf("removing the lab of before the reboot: %w", err)
	}
	return l.adopt()
}

// startAll starts everything. The node's runtime and the hosts need no apiserver,
// so they come up beside the control plane.
func (l *Lab) startAll(ctx context.Context, o Options) error {
	if err := l.freshLogs(); err != nil {
		return err
	}
	if err := l.certificates(); err != nil {
		return err
	}
	if o.Kubelet {
		if err := l.network(ctx); err != nil {
			return err
		}
	}
	return parallel(
		func() error { return l.cluster(ctx, o) },
		func() error { return l.hosts(ctx, o) },
	)
}

func (l *Lab) cluster(ctx context.Context, o Options) error {
	err := parallel(
		func() error { return l.controlPlane(ctx, o) },
		func() error { return l.runtimeWithImages(ctx, o) },
	)
	if err != nil {
		return err
	}
	return parallel(
		func() error { return l.kwok(ctx, o) },
		func() error { return l.nodeIfWanted(ctx, o) },
		func() error { return l.olmIfWanted(ctx, o) },
	)
}

func (l *Lab) runtimeWithImages(ctx context.Context, o Options) error {
	if !o.Kubelet {
		return nil
	}
	if err := l.runtime(ctx); err != nil {
		return err
	}
	archives, err := l.archives(ctx, append([]string{pauseImage}, o.Images...))
	if err != nil {
		return err
	}
	return l.importImages(ctx, append(archives, o.Archives...))
}

func (l *Lab) nodeIfWanted(ctx context.Context, o Options) error {
	if !o.Kubelet {
		return nil
	}
	if err := l.kubelet(ctx); err != nil {
		return err
	}
	return l.proxy(ctx)
}

// freshLogs removes the logs of the previous life when a new one begins.
func (l *Lab) freshLogs() error {
	records, err := filepath.Glob(l.path("run", "*.json"))
	if err != nil || len(records) > 0 {
		return err
	}
	logs, err := filepath.Glob(l.path("logs", "*.log"))
	for _, log := range logs {
		_ = os.Remove(log)
	}
	return err
}

func (l *Lab) summary(o Options) {
	l.logf("The lab is up")
	lines := []string{
		"  export KUBECONFIG=" + l.Kubeconfig(),
		"  export PATH=" + l.Bin + ":$PATH    # kubectl",
		"  logs: " + l.path("logs"),
	}
	if o.Kubelet {
		lines = append(lines, "  node "+NodeName+" at "+nodeIP+", pods in "+podCIDR)
	}
	if o.KwokNodes > 0 {
		lines = append(lines, fmt.Sprintf("  KWOK nodes: %d (label %s=%s)", o.KwokNodes, kwokLabelKey, kwokLabelValue))
	}
	for _, h := range o.Hosts {
		lines = append(lines, fmt.Sprintf("  host %s at %s, key %s", h.Name, h.IP, l.sshKey()))
	}
	if o.OpenStack || o.OVN {
		lines = append(lines, fmt.Sprintf("  OpenStack on %s at %s: source <(make -s lab-openrc)", controller.Name, controller.IP))
	}
	fmt.Fprintln(os.Stderr, strings.Join(lines, "\n"))
}
