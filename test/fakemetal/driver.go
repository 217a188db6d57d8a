package fakemetal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// ProvisioningError is the type of the error of an image that cannot be written.
const ProvisioningError = "provisioning error"

// Boot is what a machine finds at its first boot.
type Boot struct{ UserData, NetworkData []byte }

// Machines are what a Driver works on.
type Machines interface {
	// Inspect returns the hardware of a machine.
	Inspect(host *metal3v1.BareMetalHost) metal3v1.HardwareDetails
	// Fault returns the type and the message of the error of a machine; empty for none.
	Fault(host *metal3v1.BareMetalHost) (kind, message string)
	// Stays reports whether a host is to stay in its state.
	Stays(host *metal3v1.BareMetalHost) bool
	// Provision has a machine boot with its image. It may be called again.
	Provision(ctx context.Context, host *metal3v1.BareMetalHost, boot Boot) error
	// Deprovision removes the image from a machine. It may be called again.
	Deprovision(ctx context.Context, host *metal3v1.BareMetalHost) error
}

// Driver takes the BareMetalHosts of a namespace through their states.
type Driver struct {
	API       client.Client
	Namespace string
	Machines  Machines
	// Tick is how long each state lasts.
	Tick time.Duration
	// Report gets what is wrong with the driver itself.
	Report func(error)
}

// Run works until the context ends.
func (d *Driver) Run(ctx context.Context) {
	for ctx.Err() == nil {
		d.round(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(d.Tick):
		}
	}
}

// round looks at every host once.
func (d *Driver) round(ctx context.Context) {
	list := &metal3v1.BareMetalHostList{}
	if err := d.API.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return // the definition does not exist, or the test is over
	}
	for i := range list.Items {
		d.step(ctx, &list.Items[i])
	}
}

// step takes a host one state further.
func (d *Driver) step(ctx context.Context, host *metal3v1.BareMetalHost) {
	kind, message := d.Machines.Fault(host)
	if kind == ProvisioningError && host.Spec.Image == nil {
		kind, message = "", "" // what could not be written is not wanted any more
	}
	_, halted := host.Annotations[metal3v1.PausedAnnotation]
	_, detached := host.Annotations[metal3v1.DetachedAnnotation]
	before := host.Status
	status := map[string]any{
		"errorCount": 0, "errorMessage": message, "errorType": kind, "operationalStatus": "OK", "poweredOn": before.PoweredOn,
		"hardware": before.Hardware, "provisioning": map[string]any{"ID": "x", "state": before.Provisioning.State},
	}
	if kind == "" {
		status["errorType"] = nil
	}
	switch {
	case halted:
		return
	case detached:
		status["operationalStatus"] = metal3v1.StatusDetached
	case kind != "":
		status["operationalStatus"] = metal3v1.StatusError
	case !d.Machines.Stays(host):
		d.advance(ctx, host, status)
	}
	d.write(ctx, host, status)
}

// next are the states that nothing is asked for.
var next = map[metal3v1.ProvisioningState]metal3v1.ProvisioningState{
	metal3v1.StateNone: metal3v1.StateRegistering, metal3v1.StateRegistering: metal3v1.StateInspecting,
	metal3v1.StateInspecting: metal3v1.StatePreparing, metal3v1.StatePreparing: metal3v1.StateAvailable,
}

func (d *Driver) advance(ctx context.Context, host *metal3v1.BareMetalHost, status map[string]any) {
	state, wanted := host.Status.Provisioning.State, host.Spec.Image != nil
	var failed error
	switch {
	case state == metal3v1.StateInspecting:
		status["hardware"] = d.Machines.Inspect(host)
	case state == metal3v1.StateAvailable && wanted:
		state = metal3v1.StateProvisioning
	case state == metal3v1.StateProvisioning && !wanted, state == metal3v1.StateProvisioned && !wanted:
		state = metal3v1.StateDeprovisioning
	case state == metal3v1.StateProvisioning:
		if failed = d.provision(ctx, host); failed == nil {
			state = metal3v1.StateProvisioned
		}
	case state == metal3v1.StateDeprovisioning:
		if failed = d.Machines.Deprovision(ctx, host); failed == nil {
			state = metal3v1.StateAvailable
		}
	}
	if failed != nil {
		status["operationalStatus"], status["errorType"], status["errorMessage"] = metal3v1.StatusError, ProvisioningError, failed.Error()
	}
	if further, ok := next[state]; ok {
		state = further
	}
	status["poweredOn"] = state == metal3v1.StateProvisioned && host.Spec.Online
	status["provisioning"] = map[string]any{"ID": "x", "state": state}
}

// provision reads what a machine boots with, and boots it.
func (d *Driver) provision(ctx context.Context, host *metal3v1.BareMetalHost) error {
	user, err := d.read(ctx, host, "userData", host.Spec.UserData)
	if err != nil {
		return err
	}
	network, err := d.read(ctx, host, "networkData", host.Spec.NetworkData)
	if err != nil {
		return err
	}
	return d.Machines.Provision(ctx, host, Boot{UserData: user, NetworkData: network})
}

// read returns a key of the Secret that a host refers to, nil without a reference.
func (d *Driver) read(ctx context.Context, host *metal3v1.BareMetalHost, key string, ref *corev1.SecretReference) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := d.API.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if err != nil || ref.Namespace != host.Namespace || len(secret.Data[key]) == 0 {
		return nil, fmt.Errorf("no %s in Secret %s/%s: %w", key, ref.Namespace, ref.Name, err)
	}
	return secret.Data[key], nil
}

// write patches the status if it differs.
func (d *Driver) write(ctx context.Context, host *metal3v1.BareMetalHost, status map[string]any) {
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		d.Report(fmt.Errorf("writing the status of %s: %w", host.Name, err))
		return
	}
	after := &metal3v1.BareMetalHost{}
	if err := json.Unmarshal(text, after); err == nil && fmt.Sprintf("%+v", flat(after)) == fmt.Sprintf("%+v", flat(host)) {
		return
	}
	err = d.API.Status().Patch(ctx, host, client.RawPatch(types.MergePatchType, text))
	if apierrors.IsInvalid(err) {
		d.Report(err) // any other is tried again in the next round
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
