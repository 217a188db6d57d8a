// Package mustgather collects what a user needs who looks into a problem from
// afar: the objects of edpm-operators, events, logs, and where pods are. Secrets are
// omitted, and masked in everything else.
package mustgather

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/redact"
)

// managerLabels are on the pods of the manager, wherever it runs.
var managerLabels = client.MatchingLabels{"app.kubernetes.io/name": "edpm-operators", "app.kubernetes.io/component": "manager"}

// Kind is a kind of objects to collect.
type Kind struct {
	schema.GroupVersionKind
	Plural string
}

// Kinds in addition to those of edpm-operators: in the namespaces, and of the cluster.
var (
	namespaced = []Kind{
		{corev1.SchemeGroupVersion.WithKind("Pod"), "pods"},
		{corev1.SchemeGroupVersion.WithKind("Event"), "events"},
		{corev1.SchemeGroupVersion.WithKind("Service"), "services"},
		{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims"},
		{batchv1.SchemeGroupVersion.WithKind("Job"), "jobs"},
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets"},
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments"},
	}
	ofCluster = []Kind{
		{corev1.SchemeGroupVersion.WithKind("Node"), "nodes"},
		{corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "persistentvolumes"},
		{schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, "storageclasses"},
	}
)

// Options say what to collect.
type Options struct {
	// Namespaces of the objects. Those of the manager are always included.
	Namespaces []string
	// Kinds of edpm-operators, all of them in namespaces.
	Kinds []Kind
	// Logs returns the log of a container.
	Logs func(ctx context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error)
	// Summaries are further texts, by the name of their file.
	Summaries map[string]string
	// Now is when it is done.
	Now time.Time
}

// collector is one collection.
type collector struct {
	Options
	client   client.Reader
	archive  Archive
	redactor *redact.Redactor
	files    int
	// problems are what could not be had.
	problems []string
}

// Collect writes everything into the archive, and does not close it. What cannot be
// read is reported in the archive and in the result, which are the reasons; only
// an archive that cannot be written is an error.
func Collect(ctx context.Context, c client.Reader, archive Archive, opts Options) (problems []string, err error) {
	g := &collector{Options: opts, client: c, archive: archive}
	managers := g.managers(ctx)
	namespaces := slices.Clone(opts.Namespaces)
	for _, pod := range managers {
		namespaces = append(namespaces, pod.Namespace)
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)

	secrets := g.readSecrets(ctx, namespaces)
	g.redactor = redact.New(secrets)
	steps := []func() error{
		func() error { return g.secretNames(secrets) },
		func() error { return g.objects(ctx, "cluster", "", ofCluster) },
	}
	for _, ns := range namespaces {
		steps = append(steps, func() error {
			return g.objects(ctx, path.Join("namespaces", ns), ns, append(slices.Clone(namespaced), opts.Kinds...))
		})
	}
	steps = append(steps,
		func() error { return g.logs(ctx, append(managers, g.runners(ctx)...)) },
		g.summaries,
		func() error { return g.readme(namespaces) },
	)
	for _, step := range steps {
		if ctx.Err() != nil {
			return g.problems, context.Cause(ctx)
		}
		if err := step(); err != nil {
			return g.problems, err
		}
	}
	return g.problems, nil
}

// problem notes what could not be had.
func (g *collector) problem(format string, args ...any) {
	g.problems = append(g.problems, fmt.Sprintf(format, args...))
}

// add writes a file without secrets.
func (g *collector) add(name, text string) error {
	g.files++
	if err := g.archive.Add(name, []byte(g.redactor.Text(text))); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// managers are the pods of the manager in any namespace.
func (g *collector) managers(ctx context.Context) []corev1.Pod {
	pods := &corev1.PodList{}
	if err := g.client.List(ctx, pods, managerLabels); err != nil {
		g.problem("the manager is not collected: %v", err)
	} else if len(pods.Items) == 0 {
		g.problem("no pod of the manager exists, with the labels %v", managerLabels)
	}
	return pods.Items
}

// runners are the pods of runs.
func (g *collector) runners(ctx context.Context) []corev1.Pod {
	var found []corev1.Pod
	for _, ns := range g.Namespaces {
		pods := &corev1.PodList{}
		if err := g.client.List(ctx, pods, client.InNamespace(ns), client.HasLabels{"openstackansibleee_cr"}); err != nil {
			g.problem("logs of runs in namespace %s: %v", ns, err)
		}
		found = append(found, pods.Items...)
	}
	return found
}

// readSecrets reads what must not be shown.
func (g *collector) readSecrets(ctx context.Context, namespaces []string) []corev1.Secret {
	var all []corev1.Secret
	for _, ns := range namespaces {
		list := &corev1.SecretList{}
		if err := g.client.List(ctx, list, client.InNamespace(ns)); err != nil {
			g.problem("Secrets of namespace %s cannot be read, so their values are unknown and are masked only where they look like secrets: %v", ns, err)
		}
		all = append(all, list.Items...)
	}
	return all
}

// secretNames lists the Secrets with their keys.
func (g *collector) secretNames(secrets []corev1.Secret) error {
	b := &strings.Builder{}
	for _, s := range secrets {
		fmt.Fprintf(b, "%s/%s %s\n", s.Namespace, s.Name, s.Type)
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			state := "has a value"
			if len(bytes.TrimSpace(s.Data[key])) == 0 {
				state = "is empty"
			}
			fmt.Fprintf(b, "  %s %s\n", key, state)
		}
	}
	return g.add("secrets.txt", b.String())
}

// objects writes all objects of the kinds, each into a file; events into one.
func (g *collector) objects(ctx context.Context, dir, namespace string, kinds []Kind) error {
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := g.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			if !meta.IsNoMatchError(err) {
				g.problem("%s of %s: %v", k.Plural, dir, err)
			}
			continue
		}
		if err := g.write(dir, k, list.Items); err != nil {
			return err
		}
	}
	return nil
}

func (g *collector) write(dir string, k Kind, items []unstructured.Unstructured) error {
	if k.Kind == "Event" {
		return g.events(path.Join(dir, "events.txt"), items)
	}
	folder := k.Plural
	if k.Group != "" {
		folder += "." + k.Group
	}
	for i := range items {
		obj := &items[i]
		name := path.Join(dir, folder, fileName(obj.GetName())+".yaml")
		obj.SetManagedFields(nil)
		annotations := obj.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		obj.SetAnnotations(annotations)
		text, err := yaml.Marshal(g.redactor.Object(obj.Object))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := g.add(name, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// events writes a line for each event, the oldest first.
func (g *collector) events(name string, items []unstructured.Unstructured) error {
	text := func(obj *unstructured.Unstructured, fields ...string) string {
		value, _, _ := unstructured.NestedString(obj.Object, fields...)
		return value
	}
	var lines []string
	for i := range items {
		e := &items[i]
		at := cmp.Or(text(e, "lastTimestamp"), text(e, "eventTime"), text(e, "metadata", "creationTimestamp"))
		lines = append(lines, fmt.Sprintf("%s %s %s %s/%s: %s", at, text(e, "type"), text(e, "reason"),
			text(e, "involvedObject", "kind"), text(e, "involvedObject", "name"), text(e, "message")))
	}
	slices.Sort(lines)
	return g.add(name, strings.Join(append(lines, ""), "\n"))
}

// logs writes those of all containers of the pods, and of those before the last
// restart.
func (g *collector) logs(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		pod := &pods[i]
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			name := path.Join("namespaces", pod.Namespace, "logs", pod.Name, fileName(status.Name))
			if err := g.log(ctx, pod, status.Name, name+".log", false); err != nil {
				return err
			}
			if status.RestartCount == 0 {
				continue
			}
			if err := g.log(ctx, pod, status.Name, name+".previous.log", true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *collector) log(ctx context.Context, pod *corev1.Pod, container, name string, previous bool) error {
	stream, err := g.Logs(ctx, pod, container, previous)
	if err != nil {
		g.problem("log of container %s of pod %s/%s: %v", container, pod.Namespace, pod.Name, err)
		return nil
	}
	defer stream.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(stream); err != nil {
		g.problem("log of container %s of pod %s/%s ends early: %v", container, pod.Namespace, pod.Name, err)
	}
	return g.add(name, text.String())
}

func (g *collector) summaries() error {
	for _, name := range slices.Sorted(maps.Keys(g.Summaries)) {
		if err := g.add(name, g.Summaries[name]); err != nil {
			return err
		}
	}
	return nil
}

// readme says what the archive has and has not.
func (g *collector) readme(namespaces []string) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "Collected by kubectl edpm must-gather at %s.\n\n", g.Now.UTC().Format(time.RFC3339))
	fmt.Fprintf(b, "Namespaces: %s\nFiles: %d\n\n", strings.Join(namespaces, ", "), g.files+1)
	fmt.Fprintf(b, "No value of a Secret is in it: secrets.txt has their names and keys. %d texts from\n"+
		"Secrets, and whatever else looks like a secret, are replaced by %s.\nReview it nevertheless before you pass it on.\n", g.redactor.Values(), redact.Redacted)
	if len(g.problems) > 0 {
		fmt.Fprintf(b, "\nWhat could not be collected:\n- %s\n", strings.Join(g.problems, "\n- "))
	}
	return g.add("README.txt", b.String())
}

// fileName of an object: names of some kinds can have colons.
func fileName(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	return strings.NewReplacer("/", "_", ":", "_", "\\", "_").Replace(name)
}
