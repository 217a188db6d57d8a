// Package fakemetal is a test double of baremetal-operator: it takes BareMetalHosts
// through the states of the real one (docs/baremetalhost-states.md of
// metal3-io/baremetal-operator, and the comments of its API v0.9.0). What it does not
// have: BMCs, firmware, RAID, reboots, and time. The machines of an Operator do not
// exist; those of test/lab/metal are containers that boot.
package fakemetal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// T is what a test passes.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Operator looks after the BareMetalHosts of one namespace, with machines that do
// not exist.
type Operator struct {
	t         T
	api       client.Client
	namespace string
	machines  *pretended
}

// pretended are machines of which only is known what became of them.
type pretended struct {
	mu       sync.Mutex
	hardware map[string]metal3v1.HardwareDetails
	errors   map[string][2]string
	paused   metal3v1.ProvisioningState
	// done are the hosts that were provisioned and deprovisioned, each time.
	provisioned, deprovisioned []string
}

// tick is how long each state lasts.
const tick = 30 * time.Millisecond

// Start starts the double, and stops it when the test ends.
func Start(t T, api client.Client, namespace string) *Operator {
	machines := &pretended{hardware: map[string]metal3v1.HardwareDetails{}, errors: map[string][2]string{}}
	driver := &Driver{API: api, Namespace: namespace, Machines: machines, Tick: tick, Report: func(err error) { panic(err) }}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		driver.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	return &Operator{t: t, api: api, namespace: namespace, machines: machines}
}

// Hardware of machine number n: 64 GiB, two NICs, of which the first boots and has
// address 192.168.200.(10+n).
func Hardware(n int) metal3v1.HardwareDetails {
	return metal3v1.HardwareDetails{
		RAMMebibytes: 64 << 10, CPU: metal3v1.CPU{Arch: "x86_64", Count: 32, ClockMegahertz: 2400},
		Storage: []metal3v1.Storage{{Name: "/dev/sda", SizeBytes: 500_000_000_000}},
		NICs: []metal3v1.NIC{
			{Name: "eno1", MAC: fmt.Sprintf("52:54:00:00:01:%02x", n), IP: fmt.Sprintf("192.168.200.%d", 10+n), PXE: true},
			{Name: "eno2", MAC: fmt.Sprintf("52:54:00:00:02:%02x", n)},
		},
	}
}

// Register makes a BareMetalHost with that hardware.
func (o *Operator) Register(name string, hardware metal3v1.HardwareDetails) {
	o.t.Helper()
	o.machines.mu.Lock()
	o.machines.hardware[name] = hardware
	o.machines.mu.Unlock()
	host := &metal3v1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		Spec:       metal3v1.BareMetalHostSpec{BootMACAddress: hardware.NICs[0].MAC, Online: true},
	}
	if err := o.api.Create(context.Background(), host); err != nil {
		o.t.Fatalf("registering %s: %v", name, err)
	}
}

// Pause keeps hosts in the state, empty lets them proceed.
func (o *Operator) Pause(state metal3v1.ProvisioningState) {
	o.machines.mu.Lock()
	defer o.machines.mu.Unlock()
	o.machines.paused = state
}

// Fail has a host in error until Recover.
func (o *Operator) Fail(name, kind, message string) {
	o.machines.mu.Lock()
	defer o.machines.mu.Unlock()
	o.machines.errors[name] = [2]string{kind, message}
}

// Recover ends the error of a host.
func (o *Operator) Recover(name string) {
	o.machines.mu.Lock()
	defer o.machines.mu.Unlock()
	delete(o.machines.errors, name)
}

// Provisioned are the hosts to which an image was written, once for each time.
func (o *Operator) Provisioned() []string { return o.machines.noted(&o.machines.provisioned) }

// Deprovisioned are the hosts from which an image was removed, once for each time.
func (o *Operator) Deprovisioned() []string { return o.machines.noted(&o.machines.deprovisioned) }

// Inspect implements Machines.
func (p *pretended) Inspect(host *metal3v1.BareMetalHost) metal3v1.HardwareDetails {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hardware[host.Name]
}

// Fault implements Machines.
func (p *pretended) Fault(host *metal3v1.BareMetalHost) (kind, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errors[host.Name][0], p.errors[host.Name][1]
}

// Stays implements Machines.
func (p *pretended) Stays(host *metal3v1.BareMetalHost) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused != "" && host.Status.Provisioning.State == p.paused
}

// Provision implements Machines.
func (p *pretended) Provision(_ context.Context, host *metal3v1.BareMetalHost, _ Boot) error {
	p.note(&p.provisioned, host.Name)
	return nil
}

// Deprovision implements Machines.
func (p *pretended) Deprovision(_ context.Context, host *metal3v1.BareMetalHost) error {
	p.note(&p.deprovisioned, host.Name)
	return nil
}

func (p *pretended) note(list *[]string, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, name)
}

func (p *pretended) noted(list *[]string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*list)
}
