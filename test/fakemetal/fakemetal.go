// Package fakemetal is a test double of baremetal-operator: it takes BareMetalHosts
// through the states of the real one (docs/baremetalhost-states.md of
// metal3-io/baremetal-operator, and the comments of its API v0.9.0), with machines
// that do not exist. What it does not have: BMCs, firmware, RAID, reboots, and time.
package fakemetal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// T is what a test passes.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Operator looks after the BareMetalHosts of one namespace.
type Operator struct {
	t         T
	api       client.Client
	namespace string

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
	o := &Operator{t: t, api: api, namespace: namespace, hardware: map[string]metal3v1.HardwareDetails{}, errors: map[string][2]string{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			o.round(ctx)
			time.Sleep(tick)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return o
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
	o.mu.Lock()
	o.hardware[name] = hardware
	o.mu.Unlock()
	host := &metal3v1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		Spec:       metal3v1.BareMetalHostSpec{BootMACAddress: hardware.NICs[0].MAC, Online: true},
	}
	if err := o.api.Create(context.Background(), host); err != nil {
		o.t.Fatalf("registering %s: %v", name, err)
	}
}

// Pause keeps hosts in the state, empty lets them go on.
func (o *Operator) Pause(state metal3v1.ProvisioningState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paused = state
}

// Fail has a host in error until Mend.
func (o *Operator) Fail(name, kind, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errors[name] = [2]string{kind, message}
}

// Mend ends the error of a host.
func (o *Operator) Mend(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.errors, name)
}

// Provisioned are the hosts to which an image was written, once for each time.
func (o *Operator) Provisioned() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.provisioned)
}

// Deprovisioned are the hosts from which an image was removed, once for each time.
func (o *Operator) Deprovisioned() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.deprovisioned)
}

// round looks at every host once.
func (o *Operator) round(ctx context.Context) {
	list := &metal3v1.BareMetalHostList{}
	if err := o.api.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return // the definition does not exist, or the test is over
	}
	for i := range list.Items {
		o.step(ctx, &list.Items[i])
	}
}

// step takes a host one state further.
func (o *Operator) step(ctx context.Context, host *metal3v1.BareMetalHost) {
	o.mu.Lock()
	problem, failing := o.errors[host.Name]
	hardware, paused := o.hardware[host.Name], o.paused
	o.mu.Unlock()
	_, halted := host.Annotations[metal3v1.PausedAnnotation]
	_, detached := host.Annotations[metal3v1.DetachedAnnotation]
	before := host.Status
	status := map[string]any{
		"errorCount": 0, "errorMessage": problem[1], "errorType": problem[0], "operationalStatus": "OK", "poweredOn": before.PoweredOn,
		"hardware": before.Hardware, "provisioning": map[string]any{"ID": "x", "state": before.Provisioning.State},
	}
	if !failing {
		status["errorType"] = nil
	}
	switch {
	case halted:
		return
	case detached:
		status["operationalStatus"] = metal3v1.StatusDetached
	case failing:
		status["operationalStatus"] = metal3v1.StatusError
	case before.Provisioning.State == "" || before.Provisioning.State != paused:
		o.advance(ctx, host, hardware, status)
	}
	o.write(ctx, host, status)
}

// next are the states that nothing is asked for.
var next = map[metal3v1.ProvisioningState]metal3v1.ProvisioningState{
	metal3v1.StateNone: metal3v1.StateRegistering, metal3v1.StateRegistering: metal3v1.StateInspecting,
	metal3v1.StateInspecting: metal3v1.StatePreparing, metal3v1.StatePreparing: metal3v1.StateAvailable,
}

func (o *Operator) advance(ctx context.Context, host *metal3v1.BareMetalHost, hardware metal3v1.HardwareDetails, status map[string]any) {
	state, wanted := host.Status.Provisioning.State, host.Spec.Image != nil
	switch {
	case state == metal3v1.StateInspecting:
		status["hardware"] = hardware
	case state == metal3v1.StateAvailable && wanted:
		state = metal3v1.StateProvisioning
	case state == metal3v1.StateProvisioning && !wanted, state == metal3v1.StateProvisioned && !wanted:
		state = metal3v1.StateDeprovisioning
	case state == metal3v1.StateProvisioning:
		if missing := o.missing(ctx, host); missing != "" {
			status["operationalStatus"], status["errorType"], status["errorMessage"] = metal3v1.StatusError, "provisioning error", missing
			break
		}
		state = metal3v1.StateProvisioned
		o.note(&o.provisioned, host.Name)
	case state == metal3v1.StateDeprovisioning:
		state = metal3v1.StateAvailable
		o.note(&o.deprovisioned, host.Name)
	}
	if further, ok := next[state]; ok {
		state = further
	}
	status["poweredOn"] = state == metal3v1.StateProvisioned && host.Spec.Online
	status["provisioning"] = map[string]any{"ID": "x", "state": state}
}

// missing says what of the data for the first boot cannot be read.
func (o *Operator) missing(ctx context.Context, host *metal3v1.BareMetalHost) string {
	for key, ref := range map[string]*corev1.SecretReference{"userData": host.Spec.UserData, "networkData": host.Spec.NetworkData} {
		if ref == nil {
			continue
		}
		secret := &corev1.Secret{}
		err := o.api.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret)
		if err != nil || ref.Namespace != host.Namespace || len(secret.Data[key]) == 0 {
			return fmt.Sprintf("no %s in Secret %s/%s: %v", key, ref.Namespace, ref.Name, err)
		}
	}
	return ""
}

func (o *Operator) note(list *[]string, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*list = append(*list, name)
}

// write patches the status if it differs.
func (o *Operator) write(ctx context.Context, host *metal3v1.BareMetalHost, status map[string]any) {
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		o.t.Fatalf("writing the status of %s: %v", host.Name, err)
	}
	after := &metal3v1.BareMetalHost{}
	if err := json.Unmarshal(text, after); err == nil && fmt.Sprintf("%+v", flat(after)) == fmt.Sprintf("%+v", flat(host)) {
		return
	}
	err = o.api.Status().Patch(ctx, host, client.RawPatch(types.MergePatchType, text))
	if apierrors.IsInvalid(err) {
		panic(err) // any other is tried again in the next round
	}
}

// flat is a status without pointers.
func flat(host *metal3v1.BareMetalHost) map[string]any {
	out := map[string]any{}
	text, err := json.Marshal(host.Status)
	if err == nil {
		_ = json.Unmarshal(text, &out)
	}
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil || v == "" || v == false })
	return out
}
