// Package options keeps what the images of nova know of options: one ConfigMap for each image of
// a namespace. The first Nova or NovaCell that uses the image makes it, all others become its
// owners too once it is complete, and the last one that no longer uses the image deletes it.
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// JobName is the name of the Job of an image for an owner. It has the UID of the owner in its hash:
// a Nova and a NovaCell can have one name, and the Job of the other may still exist.
func JobName(owner client.Object, image string) string {
	of := map[string][]byte{imageKey: []byte(image), "owner": []byte(owner.GetUID())}
	return owner.GetName() + "-" + prefix + inputs.Digest(of)[:16]
}

// ownerIndex holds the owners of a ConfigMap with options.
const ownerIndex = "nova.options"

// Index adds the index that Keep uses.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, inputs.ConfigMapMetadata(), ownerIndex, func(cm client.Object) []string {
		if !IsOptions(cm) {
			return nil
		}
		var owners []string
		for _, owner := range cm.GetOwnerReferences() {
			owners = append(owners, string(owner.UID))
		}
		return owners
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
// nothing else uses. It returns a *phase.Halt of OptionsKnown that says what is not known.
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

// forget gives up the ConfigMaps with options of images that the owner no longer uses.
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
		if slices.Contains(kept, list.Items[i].Name) {
			continue
		}
		cm := &corev1.ConfigMap{} // with all its owners, of which the cache does not have all
		switch err := c.Get(ctx, client.ObjectKeyFromObject(&list.Items[i]), cm); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s: %w", list.Items[i].Name, err)
		}
		if err := apply.Leave(ctx, c, owner, cm); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeping) keep(ctx context.Context, done podified.Jobs, selector map[string]string) error {
	cm := &corev1.ConfigMap{}
	err := k.Get(ctx, client.ObjectKey{Namespace: k.owner.GetNamespace(), Name: Name(k.image)}, cm)
	maker := metav1.GetControllerOf(cm)
	made := maker != nil && maker.UID == k.owner.GetUID()
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading the options of %s: %w", k.image, err)
	case cm.Data[failureKey] != "" || cm.BinaryData[optionsKey] != nil:
		return k.share(ctx, cm)
	case maker != nil && !made && apply.Applied(cm):
		return phase.Waiting(novav1.OptionsKnownCondition, podifiedv1.JobRunningReason, "Waiting until %s %s has read the options of %s", maker.Kind, maker.Name, k.image)
	case !made:
		if err := k.write(ctx, nil, ""); err != nil {
			return err
		}
	}
	return k.read(ctx, done, selector)
}

// share keeps a ConfigMap that is complete for the owner. One that is not belongs to its maker
// alone, with whom it is deleted.
func (k *keeping) share(ctx context.Context, cm *corev1.ConfigMap) error {
	if err := apply.Share(ctx, k.Client, k.owner, cm); err != nil {
		return err
	}
	if failure := cm.Data[failureKey]; failure != "" {
		return phase.Stalled(novav1.OptionsKnownCondition, novav1.OptionsNotPrintedReason, "The options of %s are not known, so customServiceConfig is checked only where it is used: %s", k.image, failure)
	}
	return nil
}

// read runs the Job, and writes what it has printed.
func (k *keeping) read(ctx context.Context, done podified.Jobs, selector map[string]string) error {
	job := nova.OptionsJob(JobName(k.owner, k.image), k.image)
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
	if errors.Is(err, catalogue.ErrIncomplete) {
		phase.Again(ctx, logDelay)
		return phase.Failing(novav1.OptionsKnownCondition, novav1.LogUnreadableReason, "The log of pod %s, which has the options of %s, cannot be read: %v", pod.Name, k.image, err)
	}
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
