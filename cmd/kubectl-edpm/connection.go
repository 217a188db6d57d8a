package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// category of the kinds of edpm-operators: kubectl get edpm.
const category = "edpm"

// connection is the cluster of the kubeconfig, and the namespace that a person
// named or that the context has.
type connection struct {
	flags     *genericclioptions.ConfigFlags
	config    *rest.Config
	client    client.Client
	namespace string
	known     []apiKind
}

func (c *connection) connect() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, topologyv1.AddToScheme, dataplanev1.AddToScheme, ansibleeev1.AddToScheme, edpmv1.AddToScheme, novav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	// Enough for a list of every kind at once; the server has limits of its own.
	config.QPS, config.Burst = 50, 100
	if c.namespace, _, err = c.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	c.config = config
	c.client, err = client.New(c.answering(), client.Options{Scheme: scheme})
	return err
}

// answering is the configuration of requests that end: those that follow something have
// no time limit.
func (c *connection) answering() *rest.Config {
	config := rest.CopyConfig(c.config)
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	return config
}

// apiKind is a kind of edpm-operators that the cluster has.
type apiKind struct {
	schema.GroupVersionKind
	// Plural name, as in the path of the API.
	Plural string
}

// kinds returns the kinds of edpm-operators that the cluster has: those that
// kubectl get edpm lists. A group that does not answer is left out.
func (c *connection) kinds() ([]apiKind, error) {
	if c.known != nil {
		return c.known, nil
	}
	// Not by kubectl's cache on disk, which can be older than the installation.
	client, err := discovery.NewDiscoveryClientForConfig(c.answering())
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); err != nil && !errors.As(err, &failed) {
		return nil, fmt.Errorf("asking for the kinds of the cluster: %w", err)
	}
	var found []apiKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Categories, category) {
				found = append(found, apiKind{gv.WithKind(r.Kind), r.Name})
			}
		}
	}
	c.known = found
	return found, nil
}

// kindsNamed returns those kinds of edpm-operators that have one of the names.
func (c *connection) kindsNamed(names map[string]bool) ([]apiKind, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := c.kinds()
	return slices.DeleteFunc(slices.Clone(all), func(k apiKind) bool { return !names[k.Kind] }), err
}

// addOutput adds the flag -o of the commands that print text, JSON or YAML.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "text, json or yaml")
}

// printAs writes the value as JSON or YAML, or what text writes.
func printAs(out io.Writer, output string, value any, text func(io.Writer) error) error {
	switch output {
	case "text":
		return text(out)
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(value)
	case "yaml":
		y, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(y)
		return err
	}
	return fmt.Errorf("--output %q is neither text, json nor yaml", output)
}

// list reads all objects of a type in the namespace.
func (c *connection) list(ctx context.Context, r client.Reader, list client.ObjectList) error {
	if err := r.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("listing %T in namespace %s: %w", list, c.namespace, err)
	}
	return nil
}
