package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/binaries"
	"github.com/edpm-operators/edpm-operators/test/progress"
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
	// Hosts are the EDPM hosts that are containers, VMs those that are virtual machines.
	Hosts, VMs []Host
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

func (o Options) needsPodman() bool {
	return o.OpenStack || o.OVN || o.Machines || len(o.Hosts)+len(o.VMs) > 0
}

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

// startAll starts everything, whatever does not need one another at once. Executables
// and images that are there already take no time.
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
	runner := progress.New("lab up")
	l.out = runner
	return runner.Run(ctx, l.steps(o))
}

// step is one of [progress] that calls f.
func (l *Lab) step(name string, o Options, f func(context.Context, Options) error, after ...string) progress.Step {
	return progress.Step{Name: name, After: after, Run: func(ctx context.Context, _ io.Writer) error { return f(ctx, o) }}
}

func (l *Lab) steps(o Options) []progress.Step {
	executables, executablesOfOLM := binaries.Kubernetes().Title, binaries.OLM().Title
	forPods, forHosts := o.podImages(), o.hostImages()
	steps := l.imageSteps(slices.Concat(forPods, forHosts))
	steps = append(steps, l.step(executables, o, l.buildExecutables), l.step("control plane", o, l.controlPlane, executables),
		l.step("KWOK", o, l.kwok, "control plane"))
	if o.Kubelet {
		steps = append(steps, l.step("containerd", o, l.runtime),
			l.step("images for pods", o, l.importForPods, append(stepsOf(forPods), "containerd")...),
			l.step("node", o, l.node, "control plane", "images for pods"))
	}
	if o.needsPodman() {
		steps = append(steps, l.step("hosts", o, l.hosts, stepsOf(forHosts)...))
	}
	if o.OLM {
		steps = append(steps, l.step(executablesOfOLM, o, l.buildOLM, executables),
			l.step("OLM", o, l.olm, "control plane", executablesOfOLM))
	}
	return steps
}

// podImages are names of test/lab/images for pods.
func (o Options) podImages() []string {
	if !o.Kubelet {
		return nil
	}
	return append([]string{pauseImage}, o.Images...)
}

// hostImages are names of test/lab/images for hosts, and of those they are made of.
func (o Options) hostImages() []string {
	var names []string
	if len(o.Hosts) > 0 {
		names = append(o.storeImages(), hostImage)
	}
	if o.OpenStack || o.OVN {
		names = append(names, controllerImage)
	}
	if o.Machines {
		names = append(append(names, o.storeImages()...), machineImage)
	}
	if len(o.VMs) > 0 {
		names = append(append(names, o.storeImages()...), vmImage)
	}
	return names
}

// imageSteps builds each of the images once.
func (l *Lab) imageSteps(names []string) []progress.Step {
	slices.Sort(names)
	var steps []progress.Step
	for _, name := range slices.Compact(names) {
		steps = append(steps, progress.Step{Name: imageStep(name), Run: func(ctx context.Context, out io.Writer) error {
			return l.buildImage(ctx, name, out)
		}})
	}
	return steps
}

func imageStep(name string) string { return "image " + name }

func stepsOf(images []string) []string {
	var names []string
	for _, image := range images {
		names = append(names, imageStep(image))
	}
	return names
}

func (l *Lab) buildExecutables(ctx context.Context, _ Options) (err error) {
	l.Bin, err = l.Executables(ctx, binaries.Kubernetes())
	return err
}

func (l *Lab) buildOLM(ctx context.Context, _ Options) (err error) {
	l.OLM, err = l.Executables(ctx, binaries.OLM())
	return err
}

func (l *Lab) importForPods(ctx context.Context, o Options) error {
	archives, err := l.archives(ctx, o.podImages())
	if err != nil {
		return err
	}
	return l.importImages(ctx, append(archives, o.Archives...))
}

func (l *Lab) node(ctx context.Context, _ Options) error {
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
	for _, h := range slices.Concat(o.Hosts, o.VMs) {
		lines = append(lines, fmt.Sprintf("  host %s at %s, key %s", h.Name, h.IP, l.sshKey()))
	}
	if o.OpenStack || o.OVN {
		lines = append(lines, fmt.Sprintf("  OpenStack on %s at %s: source <(make -s lab-openrc)", controller.Name, controller.IP))
	}
	fmt.Fprintln(os.Stderr, strings.Join(lines, "\n"))
}
