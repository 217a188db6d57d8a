package rotation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=patch

// finalizerPrefix of Secrets: kind and name of the holder follow.
const finalizerPrefix = "nova.openstack.org/"

// maxName is the most characters of a finalizer behind its prefix.
const maxName = 63

// Holder holds Secrets for one object, so that they are not deleted while a pod or a compute may
// use them.
//
// The status says which Secrets are held. It names one before the Secret gets its finalizer,
// and until the Secret has lost it: no finalizer is forgotten, wherever the manager stops.
type Holder struct {
	client.Client
	Inputs *inputs.Reader
	Events events.EventRecorder
	// Kind of the object in the finalizer.
	Kind   string
	Owner  phase.Object
	Status *novav1.ConfigStatus
	// Names are the Secrets with credentials that the spec names. Those with certificates are
	// not held: some have a Secret made again by deleting it.
	Names []string

	troubles []string
}

// finalizer names the holder.
func (h *Holder) finalizer() string {
	return finalizerPrefix + names.Fit(h.Kind+"-"+h.Owner.GetName(), maxName)
}

// Hold is the phase that holds the Secrets. What prevents it shows in Report.
func (h *Holder) Hold(ctx context.Context) error {
	h.Status.ConfigRollout = nil // unknown until all is deployed
	for _, name := range h.known() {
		if err := h.hold(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// known are the Secrets that the spec names and those that are recorded, in their order.
func (h *Holder) known() []string {
	all := slices.Concat(h.Names, h.Status.HeldSecrets)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

func (h *Holder) hold(ctx context.Context, name string) error {
	secret, err := h.Inputs.Generated(ctx, h.Owner.GetNamespace(), name)
	if err != nil || secret == nil || apply.Applied(secret) {
		return nil //nolint:nilerr // what needs it says so; one of the operators stays as long as its owner
	}
	recorded, held := slices.Contains(h.Status.HeldSecrets, name), controllerutil.ContainsFinalizer(secret, h.finalizer())
	switch deleted := !secret.DeletionTimestamp.IsZero(); {
	case deleted && held && slices.Contains(h.Names, name):
		h.trouble("Secret %s is being deleted, and is kept as long as the spec names it: name another one", name)
	case deleted && !held:
		h.trouble("Secret %s is being deleted and cannot be kept: name another one in the spec", name)
	case !recorded:
		h.Status.HeldSecrets = append(h.Status.HeldSecrets, name)
		slices.Sort(h.Status.HeldSecrets)
		phase.Soon(ctx)
	case !held:
		return h.add(ctx, secret)
	}
	return nil
}

func (h *Holder) trouble(format string, args ...any) {
	h.troubles = append(h.troubles, fmt.Sprintf(format, args...))
}

// add gives a Secret the finalizer, and the object one by which it releases the Secret.
func (h *Holder) add(ctx context.Context, secret *corev1.Secret) error {
	if err := apply.Finalizer(ctx, h.Client, h.Owner, novav1.HeldSecretsFinalizer, controllerutil.AddFinalizer); err != nil {
		return err
	}
	err := apply.Finalizer(ctx, h.Client, secret.DeepCopy(), h.finalizer(), controllerutil.AddFinalizer)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		h.trouble("Secret %s cannot be held, so do not delete it: %v", secret.Name, err)
		return nil
	}
	return client.IgnoreNotFound(err)
}

// Report says who runs the present configuration, made from inputs, and releases the Secrets
// that the spec names no more once all do.
func (h *Holder) Report(ctx context.Context, inputs string, parts ...Part) error {
	rollout := Sum(inputs, parts...)
	h.Status.ConfigRollout = rollout
	if IsComplete(rollout) {
		if err := h.releaseFormer(ctx); err != nil {
			return err
		}
	}
	mark(h.Owner.GetConditions(), rollout, h.former(), h.troubles)
	return nil
}

// former are the Secrets that are held and that the spec names no more.
func (h *Holder) former() []string {
	return slices.DeleteFunc(slices.Clone(h.Status.HeldSecrets), func(name string) bool { return slices.Contains(h.Names, name) })
}

func (h *Holder) releaseFormer(ctx context.Context) error {
	for _, name := range h.former() {
		released, err := h.release(ctx, name)
		if err != nil {
			return err
		}
		if released {
			h.Status.HeldSecrets = slices.DeleteFunc(slices.Clone(h.Status.HeldSecrets), func(n string) bool { return n == name })
		}
	}
	return nil
}

// release takes the finalizer from a Secret, and reports whether it is gone.
func (h *Holder) release(ctx context.Context, name string) (bool, error) {
	secret, err := h.Inputs.Generated(ctx, h.Owner.GetNamespace(), name)
	if err == nil && secret != nil {
		err = client.IgnoreNotFound(apply.Finalizer(ctx, h.Client, secret.DeepCopy(), h.finalizer(), controllerutil.RemoveFinalizer))
	}
	if isDenied(err) {
		h.trouble("Secret %s cannot be released: %v", name, err)
		return false, nil
	}
	return err == nil, err
}

// isDenied reports whether the manager may not read or write a Secret.
func isDenied(err error) bool {
	var forbidden *inputs.ForbiddenError
	var limit *inputs.LimitError
	return errors.As(err, &forbidden) || errors.As(err, &limit) || apierrors.IsForbidden(err)
}

// ReleaseAll lets an object go that is being deleted, with all Secrets that it holds. One that
// the manager may not write any more keeps the finalizer.
func (h *Holder) ReleaseAll(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(h.Owner, novav1.HeldSecretsFinalizer) {
		return nil
	}
	for _, name := range h.known() {
		released, err := h.release(ctx, name)
		if err != nil {
			return err
		}
		if !released {
			h.Events.Eventf(h.Owner, nil, corev1.EventTypeWarning, novav1.SecretLeftEvent, "Deleting",
				"Secret %s keeps finalizer %s, which the operators may not remove: remove it (kubectl edit secret %[1]s)", name, h.finalizer())
		}
	}
	return client.IgnoreNotFound(apply.Finalizer(ctx, h.Client, h.Owner, novav1.HeldSecretsFinalizer, controllerutil.RemoveFinalizer))
}
