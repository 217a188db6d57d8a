package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// relatedImage begins the names of variables with images that the manager uses.
const relatedImage = "RELATED_IMAGE_"

// runnerImages are those of the execution environment, which has no default.
var runnerImages = []string{relatedImage + "ANSIBLEEE_IMAGE_URL_DEFAULT", relatedImage + "NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT"}

// manifests returns the objects of the bundle, the ClusterServiceVersion first.
func (in *input) manifests(o options, icon []byte) ([]*unstructured.Unstructured, error) {
	if err := in.setManager(o); err != nil {
		return nil, err
	}
	if err := in.rename(o.pkg); err != nil {
		return nil, err
	}
	csv, err := in.serviceVersion(o, icon)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("converting the ClusterServiceVersion: %w", err)
	}
	delete(content, "status")
	objects := []*unstructured.Unstructured{{Object: content}}
	for _, d := range in.owned {
		objects = append(objects, d.raw)
	}
	for _, obj := range in.extra {
		obj.SetNamespace("") // OLM puts it where the operators are
		objects = append(objects, obj)
	}
	return objects, nil
}

// setManager puts the options into the manager's pod.
func (in *input) setManager(o options) error {
	containers := in.deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return fmt.Errorf("the Deployment has %d containers and should have the manager alone", len(containers))
	}
	manager := &containers[0]
	manager.Image = o.image
	manager.Args = append(manager.Args, "--operators="+o.operators, "--leader-election-id="+o.pkg)
	for i, env := range manager.Env {
		if o.runner != "" && slices.Contains(runnerImages, env.Name) {
			manager.Env[i].Value = o.runner
		}
		if image := o.images[env.Name]; image != "" {
			manager.Env[i].Value = image
		}
		if strings.HasPrefix(env.Name, relatedImage) && manager.Env[i].Value == "" && !slices.Contains(runnerImages, env.Name) {
			return fmt.Errorf("config/olm gives %s no image: name the one that the manager would use", env.Name)
		}
	}
	return nil
}

// instanceLabel tells the pods of one package from those of others.
const instanceLabel = "app.kubernetes.io/instance"

// rename gives what is in the namespace of the operators the name of the package:
// OLM installs a package that another requires next to it.
func (in *input) rename(pkg string) error {
	d := in.deployment
	d.Name, d.Spec.Template.Spec.ServiceAccountName = pkg+"-manager", pkg+"-manager"
	for _, labels := range []*map[string]string{&d.Labels, &d.Spec.Selector.MatchLabels, &d.Spec.Template.Labels} {
		if *labels == nil {
			*labels = map[string]string{}
		}
		(*labels)[instanceLabel] = pkg
	}
	for _, obj := range in.extra {
		if strings.HasSuffix(obj.GetName(), metricsReader) {
			obj.SetName(pkg + metricsReader)
		}
		if obj.GetKind() != "Service" {
			continue
		}
		obj.SetName(pkg + obj.GetName()[strings.LastIndex(obj.GetName(), "-"):])
		if err := unstructured.SetNestedField(obj.Object, pkg, "spec", "selector", instanceLabel); err != nil {
			return fmt.Errorf("selecting the pods of Service %s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// serviceVersion adds to the base what follows from the rest of config.
func (in *input) serviceVersion(o options, icon []byte) (*v1alpha1.ClusterServiceVersion, error) {
	csv := in.base.DeepCopy()
	csv.Name = versionName(o.pkg, o.version)
	csv.Spec.Version = version.OperatorVersion{Version: semver.MustParse(o.version)}
	if o.replaces != "" {
		csv.Spec.Replaces = versionName(o.pkg, o.replaces)
	}
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	csv.Spec.RelatedImages = relatedImages(in.deployment.Spec.Template.Spec.Containers[0])
	csv.Spec.InstallStrategy.StrategySpec = in.strategy()
	csv.Spec.CustomResourceDefinitions = v1alpha1.CustomResourceDefinitions{Owned: in.ownedKinds(), Required: in.requiredKinds()}
	hooks, err := in.webhooks()
	if err != nil {
		return nil, err
	}
	csv.Spec.WebhookDefinitions = hooks
	return csv, in.annotate(csv, o)
}

func versionName(pkg, version string) string { return pkg + ".v" + version }

// annotate adds the examples, and a namespace that lets only confined pods in.
func (in *input) annotate(csv *v1alpha1.ClusterServiceVersion, o options) error {
	examples, err := json.MarshalIndent(in.examples, "", "  ")
	if err != nil {
		return fmt.Errorf("converting the examples: %w", err)
	}
	namespace := o.pkg + "-system"
	template, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace, "labels": map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
			"pod-security.kubernetes.io/audit":   "restricted",
			"pod-security.kubernetes.io/warn":    "restricted",
		}},
	})
	for key, value := range map[string]string{
		"alm-examples":   string(examples),
		"containerImage": o.image,
		"operatorframework.io/suggested-namespace":          namespace,
		"operatorframework.io/suggested-namespace-template": string(template),
	} {
		csv.Annotations[key] = value
	}
	return err
}

// strategy returns the Deployment and what it may do.
func (in *input) strategy() v1alpha1.StrategyDetailsDeployment {
	account := in.deployment.Spec.Template.Spec.ServiceAccountName
	return v1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{{
			Name: in.deployment.Name, Label: in.deployment.Labels, Spec: in.deployment.Spec,
		}},
		Permissions:        []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: withoutCertificates(in.role.Rules)}},
		ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: withoutCertificates(in.rules)}},
	}
}

// relatedImages returns the image of the manager and those that it is given.
func relatedImages(manager corev1.Container) []v1alpha1.RelatedImage {
	images := []v1alpha1.RelatedImage{{Name: "manager", Image: manager.Image}}
	for _, env := range manager.Env {
		if name, ok := strings.CutPrefix(env.Name, relatedImage); ok && env.Value != "" {
			name = strings.TrimSuffix(name, "_IMAGE_URL_DEFAULT")
			images = append(images, v1alpha1.RelatedImage{Name: strings.ToLower(strings.ReplaceAll(name, "_", "-")), Image: env.Value})
		}
	}
	return images
}
