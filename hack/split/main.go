// Command split makes of what kustomize makes of config/operator, read from its
// standard input, one manager for each operator: see hack/split.sh.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	out := flag.String("out", "", "directory to write, with a file for each operator")
	roles := flag.String("roles", "", "directory with <operator>/role.yaml")
	operators := flag.String("operators", "", "operators, separated by commas")
	flag.Parse()
	if err := run(os.Stdin, *roles, *out, strings.Split(*operators, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "split:", err)
		os.Exit(1)
	}
}

// run writes a file for each operator, and shared.yaml with what is there once.
func run(in io.Reader, roles, out string, operators []string) error {
	objects, err := parse(in)
	if err != nil {
		return fmt.Errorf("reading config/operator: %w", err)
	}
	shared := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !isShared(o) })
	for _, o := range shared {
		if err := (split{instance: "edpm-operators"}).label(o); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(out, "shared.yaml"), shared); err != nil {
		return err
	}
	for _, operator := range operators {
		s := split{operator: operator, instance: "edpm-operators-" + operator}
		own, err := s.objects(objects, filepath.Join(roles, operator, "role.yaml"))
		if err != nil {
			return fmt.Errorf("operator %s: %w", operator, err)
		}
		if err := write(filepath.Join(out, operator+".yaml"), own); err != nil {
			return err
		}
	}
	return nil
}

func parse(in io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := k8syaml.NewYAMLOrJSONDecoder(in, 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
}

// managerRoles are the rights of the manager; those on Secrets are apart, so that they
// can be bound by namespace.
var managerRoles = []string{"edpm-operators-manager-role", "edpm-operators-manager-secrets-role"}

// isShared reports whether an object is there once, whichever operators are deployed.
func isShared(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Namespace" || o.GetName() == "edpm-operators-metrics-reader"
}

// split makes the objects of one operator.
type split struct {
	operator, instance string
	// mutates reports whether the operator has webhooks that set defaults.
	mutates bool
}

// renamed are the names that each manager has for itself.
var renamed = regexp.MustCompile(`\bedpm-operators-(manager|metrics|webhook-service|mutating-webhook-configuration|validating-webhook-configuration)\b`)

// named are the objects that the rights name, by their names before kustomize:
// the certificate of the webhooks, and the webhook configurations.
var named = regexp.MustCompile(`(?m)^( *- )(webhook-service-cert|(?:mutating|validating)-webhook-configuration)$`)

func (s split) objects(all []*unstructured.Unstructured, roles string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(roles)
	if err != nil {
		return nil, err
	}
	rights, err := parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", roles, err)
	}
	s.mutates = slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "MutatingWebhookConfiguration" && slices.ContainsFunc(list(o, "webhooks"), s.serves)
	})
	var own []*unstructured.Unstructured
	for _, o := range all {
		if isShared(o) || o.GetKind() == "ClusterRole" && !slices.Contains(managerRoles, o.GetName()) && !s.isOfKind(o) {
			continue
		}
		made, err := s.own(o, rights)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if made != nil {
			own = append(own, made)
		}
	}
	return own, nil
}

// isOfKind reports whether a ClusterRole for people is about a kind of the operator.
func (s split) isOfKind(role *unstructured.Unstructured) bool {
	for _, rule := range list(role, "rules") {
		groups, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "apiGroups")
		if slices.ContainsFunc(groups, func(g string) bool { return strings.HasPrefix(g, s.operator+".") }) {
			return true
		}
	}
	return false
}

func list(o *unstructured.Unstructured, field string) []any {
	items, _, _ := unstructured.NestedSlice(o.Object, field)
	return items
}

// own returns the object as the operator has it, nil if it has none.
func (s split) own(from *unstructured.Unstructured, rights []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := from.DeepCopy()
	if role := roleOf(o); role != nil {
		i := slices.IndexFunc(rights, func(r *unstructured.Unstructured) bool {
			return r.GetKind() == role.kind && "edpm-operators-"+r.GetName() == role.name
		})
		if i < 0 {
			return nil, nil // its code needs no such rights
		}
		if o.GetKind() == role.kind {
			o.Object["rules"] = rights[i].Object["rules"]
		}
	}
	if hooks := list(o, "webhooks"); hooks != nil {
		hooks = slices.DeleteFunc(hooks, func(h any) bool { return !s.serves(h) })
		if len(hooks) == 0 {
			return nil, nil
		}
		o.Object["webhooks"] = hooks
	}
	if o.GetKind() == "Deployment" {
		if err := s.setArguments(o); err != nil {
			return nil, err
		}
	}
	if err := s.label(o); err != nil {
		return nil, err
	}
	return s.rename(o)
}

// manages names a role of the manager.
type manages struct{ kind, name string }

// roleOf returns the role of the manager that an object is or binds, nil if there is
// none.
func roleOf(o *unstructured.Unstructured) *manages {
	m := &manages{o.GetKind(), o.GetName()}
	if kind, ok, _ := unstructured.NestedString(o.Object, "roleRef", "kind"); ok {
		m.kind = kind
		m.name, _, _ = unstructured.NestedString(o.Object, "roleRef", "name")
	}
	if !slices.Contains(managerRoles, m.name) {
		return nil
	}
	return m
}

// serves reports whether a webhook is the operator's, as its path says: the cell rule
// is nova's, although it judges kinds of the data plane.
func (s split) serves(hook any) bool {
	path, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
	words := strings.Split(path, "-")
	return len(words) > 1 && words[1] == s.operator
}

// setArguments makes the manager run this operator alone.
func (s split) setArguments(o *unstructured.Unstructured) error {
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("it has %d containers and should have the manager alone", len(containers))
	}
	manager := containers[0].(map[string]any)
	args, _ := manager["args"].([]any)
	for i, arg := range args {
		if configurations, ok := strings.CutPrefix(arg.(string), "--webhook-configurations="); ok && !s.mutates {
			args[i] = "--webhook-configurations=" + strings.TrimPrefix(configurations, "mutating/$(MUTATING_WEBHOOKS),")
		}
	}
	manager["args"] = append(args, "--operators="+s.operator, "--leader-election-id="+s.instance)
	return unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
}

const instanceLabel = "app.kubernetes.io/instance"

// label makes labels and selectors those of this manager alone.
func (s split) label(o *unstructured.Unstructured) error {
	paths := map[string][][]string{
		"Deployment":    {{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}},
		"Service":       {{"spec", "selector"}},
		"NetworkPolicy": {{"spec", "podSelector", "matchLabels"}},
	}[o.GetKind()]
	for _, path := range append(paths, []string{"metadata", "labels"}) {
		if err := unstructured.SetNestedField(o.Object, s.instance, append(path, instanceLabel)...); err != nil {
			return err
		}
	}
	return nil
}

func (s split) rename(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil, err
	}
	text = named.ReplaceAll(text, []byte("${1}"+s.instance+"-$2"))
	text = renamed.ReplaceAll(text, []byte(s.instance+"-$1"))
	made := &unstructured.Unstructured{}
	return made, yaml.Unmarshal(text, &made.Object)
}

func write(path string, objects []*unstructured.Unstructured) error {
	text := []byte("# Generated by make manifests from config/operator. Not to be edited.\n")
	for i, o := range objects {
		if i > 0 {
			text = append(text, "---\n"...)
		}
		made, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		text = append(text, made...)
	}
	return os.WriteFile(path, text, 0o644)
}
