package podified

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/images"
)

// Component is a part of an object with an image of its own.
type Component struct {
	// Spec is the image that the object names, Default that of the operators.
	Spec, Default string
	// Sets and Job are the names of the StatefulSets and of the Job that run it.
	Sets []string
	Job  string
}

// ChooseImages records in the status of an object which images its components run. Objects
// of earlier versions, which recorded none, keep what their pods have.
func ChooseImages(ctx context.Context, c client.Reader, owner Released, components map[string]Component) error {
	choices := map[string]images.Component{}
	for name, component := range components {
		choice := images.Component{Spec: component.Spec, Default: component.Default}
		if component.Spec == "" && owner.GetRelease().Images[name] == "" {
			var err error
			if choice.Running, err = running(ctx, c, owner, component); err != nil {
				return err
			}
		}
		choices[name] = choice
	}
	images.Record(owner, choices)
	return nil
}

// Released is an object that records the images of its components.
type Released interface {
	client.Object
	images.Released
}

// running returns the image with which a component runs already, empty if it does not.
func running(ctx context.Context, c client.Reader, owner client.Object, component Component) (string, error) {
	for _, name := range component.Sets {
		if image, err := Running(ctx, c, owner.GetNamespace(), name); image != "" || err != nil {
			return image, err
		}
	}
	jobs := &batchv1.JobList{}
	if err := c.List(ctx, jobs, client.InNamespace(owner.GetNamespace()), client.MatchingFields{jobIndex: jobKey(string(owner.GetUID()), component.Job)}); err != nil {
		return "", fmt.Errorf("listing the Jobs of %s: %w", component.Job, err)
	}
	image := ""
	for _, job := range jobs.Items {
		image = cmp.Or(image, firstImage(job.Spec.Template.Spec))
	}
	return image, nil
}

// Running returns the image of the pods of a StatefulSet, empty if there is no such set.
func Running(ctx context.Context, c client.Reader, namespace, name string) (string, error) {
	set := &appsv1.StatefulSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading StatefulSet %s: %w", name, err)
	}
	return firstImage(set.Spec.Template.Spec), nil
}

// Lagging says what a StatefulSet waits for until all of its pods run an image and are ready,
// empty if they do or if there is no such set.
func Lagging(ctx context.Context, c client.Reader, namespace, name, image string) (string, error) {
	set := &appsv1.StatefulSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	status, replicas := set.Status, ptr.Deref(set.Spec.Replicas, 1)
	if firstImage(set.Spec.Template.Spec) == image && status.ObservedGeneration >= set.Generation && status.UpdatedReplicas >= replicas && status.ReadyReplicas >= replicas {
		return "", nil
	}
	return fmt.Sprintf("StatefulSet %s has all of its pods ready with image %s", name, image), nil
}

// firstImage is the image of the first container, which is that of the service.
func firstImage(pod corev1.PodSpec) string {
	if len(pod.Containers) == 0 {
		return ""
	}
	return pod.Containers[0].Image
}
