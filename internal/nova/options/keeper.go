// Package options keeps what the images of nova know of options: one ConfigMap for each
// image of a namespace, which the first cell that uses the image makes, and removes when it
// does not use it any more. Another cell that does then makes it again.
package options

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;patch;delete
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=pods/log,verbs=get

// Of the ConfigMap of an image.
const (
	prefix = "nova-options-"
	// imageKey, and one of optionsKey and failureKey once the Job has ended.
	imageKey, optionsKey, failureKey = "image", "options", "failure"
)

// Name of the ConfigMap of an image.
func Name(image string) string {
	return prefix + inputs.Digest(map[string][]byte{imageKey: []byte(image)})[:16]
}

// JobName is the name of the Job of an image for a cell: that of another cell may still be there.
func JobName(cell, image string) string { return cell + "-" + Name(image) }

// ownerIndex holds the owner of a ConfigMap with options.
const ownerIndex = "nova.options"

// Index adds the index that Keep uses.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, inputs.ConfigMapMetadata(), ownerIndex, func(cm client.Object) []string {
		owner := metav1.GetControllerOf(cm)
		if owner == nil || !IsOptions(cm) {
			return nil
		}
		return []string{string(owner.UID)}
	})
}

// IsOptions reports whether a ConfigMap has the name of one with options.
func IsOptions(cm client.Object) bool { return strings.HasPrefix(cm.GetName(), prefix) }

// logDelay is how long it takes until a log that could not be read is read again.
const logDelay = time.Minute

// Logs opens the log of a pod.
type Logs func(ctx context.Context, namespace, pod string) (io.ReadCloser, error)

// Keeper reads the options of images, and keeps them.
type Keeper struct {
	Pods *podified.Deployer
	// Metadata of ConfigMaps in the cache of the manager, with the index.
	Metadata client.Reader
	Logs     Logs
}

// keeping is the options of one image in one reconciliation.
type keeping struct {
	*Keeper
	client.Client
	owner phase.Object
	image string
}

// Keep makes sure that the options of the images are known, and removes those of others that
// the owner has made. It returns a *phase.Halt of OptionsKnown that says what is not known.
func (k *Keeper) Keep(ctx context.Context, owner phase.Object, done podified.Jobs, selector map[string]string, images []string) error {
	c := k.Pods.Inputs.Client(k.Pods.Client)
	var first error
	for _, image := range images {
		err := (&keeping{k, c, owner, image}).keep(ctx, done, selector)
		var halt *phase.Halt
		if err != nil && !errors.As(err, &halt) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if err := k.forget(ctx, c, owner, images); err != nil {
		return err
	}
	return first
}

// forget deletes the ConfigMaps of the owner with options of images that it no longer uses.
func (k *Keeper) forget(ctx context.Context, c client.Client, owner phase.Object, images []string) error {
	kept := make([]string, len(images))
	for i, image := range images {
		kept[i] = Name(image)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := k.Metadata.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{ownerIndex: string(owner.GetUID())}); err != nil {
		return fmt.Errorf("listing the options of images: %w", err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if slices.Contains(kept, item.Name) {
			continue
		}
		item.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := apply.Delete(ctx, c, owner, item); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeping) keep(ctx context.Context, done podified.Jobs, selector map[string]string) error {
	const known = novav1.OptionsKnownCondition
	cm := &corev1.ConfigMap{}
	err := k.Get(ctx, client.ObjectKey{Namespace: k.owner.GetNamespace(), Name: Name(k.image)}, cm)
	maker := metav1.GetControllerOf(cm)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading the options of %s: %w", k.image, err)
	case maker != nil && maker.Kind == "NovaCell" && maker.UID != k.owner.GetUID() && len(cm.Data) == 1 && cm.BinaryData == nil:
		return phase.Waiting(known, podifiedv1.JobRunningReason, "Waiting until NovaCell %s has read the options of %s", maker.Name, k.image)
	case cm.Data[failureKey] != "":
		return phase.Stalled(known, novav1.OptionsNotPrintedReason, "The options of %s are not known, so customServiceConfig is checked only where it is used: %s", k.image, cm.Data[failureKey])
	case cm.BinaryData[optionsKey] != nil:
		return nil
	case err != nil || maker == nil || maker.UID != k.owner.GetUID():
		if err := k.write(ctx, nil, ""); err != nil {
			return err
		}
	}
	return k.read(ctx, done, selector)
}

// read runs the Job, and writes what it has printed.
func (k *keeping) read(ctx context.Context, done podified.Jobs, selector map[string]string) error {
	job := nova.OptionsJob(JobName(k.owner.GetName(), k.image), k.image)
	job.NodeSelector, job.Finished = selector, k.finish
	delete(done, job.Name) // what it has printed was lost, or it did not run
	return k.Pods.RunJob(ctx, k.owner, novav1.OptionsKnownCondition, done, job)
}

func (k *keeping) finish(ctx context.Context, pod *corev1.Pod) error {
	log, err := k.Logs(ctx, pod.Namespace, pod.Name)
	if err != nil {
		phase.Again(ctx, logDelay)
		return phase.Failing(novav1.OptionsKnownCondition, novav1.LogUnreadableReason, "The log of pod %s, which has the options of %s, cannot be read: %v", pod.Name, k.image, err)
	}
	defer func() { _ = log.Close() }()
	known, err := catalogue.ParseLog(log)
	if err != nil {
		return k.write(ctx, nil, err.Error())
	}
	data, err := known.Encode()
	if err != nil {
		return err
	}
	return k.write(ctx, data, "")
}

// ConfigMap returns that of an image: with options, as a Catalogue encodes them, or without, which
// says that its owner reads them.
func ConfigMap(namespace, image string, options []byte) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name(image)},
		Data:       map[string]string{imageKey: names.Fit(image, 1024)},
	}
	if options != nil {
		cm.BinaryData = map[string][]byte{optionsKey: options}
	}
	return cm
}

func (k *keeping) write(ctx context.Context, options []byte, failure string) error {
	cm := ConfigMap(k.owner.GetNamespace(), k.image, options)
	if failure != "" {
		cm.Data[failureKey] = failure
	}
	return apply.Halt(novav1.OptionsKnownCondition, apply.Child(ctx, k.Client, k.Pods.Manager, k.owner, cm, &corev1.ConfigMap{}))
}
