package nodesets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// input is an object, and the file that has it.
type input[T any] struct {
	source string
	object T
}

// key of an object.
type key struct{ kind, namespace, name string }

// Inputs are the objects that were read.
type Inputs struct {
	nodeSets    []input[nodeSet]
	deployments []input[deployment]
	services    map[key]input[service]
	configMaps  map[key]input[configMap]
	seen        map[key]string
	findings    []Finding
}

// NewInputs returns none.
func NewInputs() *Inputs {
	return &Inputs{services: map[key]input[service]{}, configMaps: map[key]input[configMap]{}, seen: map[key]string{}}
}

// IsEmpty reports whether there is nothing to import.
func (in *Inputs) IsEmpty() bool {
	return len(in.nodeSets) == 0 && len(in.deployments) == 0 && len(in.services) == 0
}

// Read adds the objects of a text in YAML or JSON: of several documents, and of Lists. The
// error has nothing of the text.
func (in *Inputs) Read(source string, text []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = in.readDocument(source, document)
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", source, n, err)
		}
	}
}

func (in *Inputs) readDocument(source string, document []byte) error {
	object, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return errors.New("is not valid YAML, or has a field twice: " + withoutText(err))
	}
	if strings.TrimSpace(string(object)) == "null" {
		return nil // only comments
	}
	return in.readObject(source, object)
}

// withoutText is what an error of the parser says, without what it quotes of the text.
func withoutText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\"")
	text, _, _ = strings.Cut(text, "'")
	text, _, _ = strings.Cut(text, "`")
	return strings.TrimSpace(text)
}

// readObject adds an object in JSON.
func (in *Inputs) readObject(source string, text []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &head); err != nil {
		return errors.New("is not a Kubernetes object, with apiVersion, kind and metadata")
	}
	if strings.HasSuffix(head.Kind, "List") {
		for i, item := range head.Items {
			if err := in.readObject(source, item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	if head.Kind == "" || head.Metadata.Name == "" && isRead(head.GroupVersionKind()) {
		return errors.New("is not a Kubernetes object: it needs kind and metadata.name")
	}
	k := key{head.Kind, head.Metadata.Namespace, head.Metadata.Name}
	if first, ok := in.seen[k]; ok && isRead(head.GroupVersionKind()) {
		return fmt.Errorf("%s %s is in %s already: give it once", head.Kind, head.Metadata.Name, first)
	}
	in.seen[k] = source
	if err := in.decode(source, head.GroupVersionKind(), k, text); err != nil {
		return fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
	}
	return nil
}

// isRead reports whether objects of a kind are read.
func isRead(gvk schema.GroupVersionKind) bool {
	if gvk.Group == "" {
		return gvk.Kind == "ConfigMap" || gvk.Kind == "Secret"
	}
	return gvk.Group == Group && (gvk.Kind == NodeSetKind || gvk.Kind == ServiceKind || gvk.Kind == DeploymentKind)
}

func (in *Inputs) decode(source string, gvk schema.GroupVersionKind, k key, text []byte) error {
	r := reporter{source, k.kind + "/" + k.name, &in.findings}
	if !isRead(gvk) {
		r.add(field.NewPath("kind"), NotNeeded, "objects of this kind are not imported")
		return nil
	}
	if gvk.Group == Group && gvk.Version != Version {
		r.add(field.NewPath("apiVersion"), NoCounterpart, "only %s/%s is known: convert the object, for example by reading it from the cluster", Group, Version)
		return nil
	}
	switch k.kind {
	case NodeSetKind:
		return decodeInto(r, text, func(o nodeSet) { in.nodeSets = append(in.nodeSets, input[nodeSet]{source, o}) })
	case DeploymentKind:
		return decodeInto(r, text, func(o deployment) { in.deployments = append(in.deployments, input[deployment]{source, o}) })
	case ServiceKind:
		return decodeInto(r, text, func(o service) { in.services[k] = input[service]{source, o} })
	case "ConfigMap":
		c := configMap{}
		err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &c)
		in.configMaps[k] = input[configMap]{source, c}
		return err
	}
	return nil // of a Secret nothing is read
}

// decodeInto decodes an object, and notes fields that are not known.
func decodeInto[T any](r reporter, text []byte, do func(T)) error {
	var object T
	unknown, err := kubejson.UnmarshalStrict(text, &object, kubejson.DisallowUnknownFields)
	if err != nil {
		return err
	}
	unknownFields(r, nil, unknown)
	do(object)
	return nil
}

// unknownFields notes fields that are not known, below a path.
func unknownFields(r reporter, at *field.Path, unknown []error) {
	for _, err := range unknown {
		path := field.NewPath(pathOf(err))
		if at != nil {
			path = at.Child(pathOf(err))
		}
		r.add(path, NoCounterpart, "is not a field of this version of the kind: find out what it was for, and remove it")
	}
}

func pathOf(err error) string {
	if f := kubejson.FieldError(nil); errors.As(err, &f) && f.FieldPath() != "" {
		return f.FieldPath()
	}
	return "spec"
}

// find returns an object of a namespace by its name. Objects in files often have no namespace.
func find[T any](objects map[key]T, kind, namespace, name string) (T, bool) {
	if found, ok := objects[key{kind, namespace, name}]; ok {
		return found, true
	}
	if namespace != "" {
		found, ok := objects[key{kind, "", name}]
		return found, ok
	}
	for _, k := range slices.SortedFunc(maps.Keys(objects), compareKeys) {
		if k.kind == kind && k.name == name {
			return objects[k], true
		}
	}
	var none T
	return none, false
}

// ConfigMaps returns the names of those that the objects name, in order.
func (in *Inputs) ConfigMaps() []string {
	named := map[string]bool{extraConfig: true}
	note := func(sources []dataSource) {
		for _, source := range sources {
			if source.ConfigMapRef != nil {
				named[source.ConfigMapRef.Name] = true
			}
		}
	}
	for _, s := range in.nodeSets {
		note(s.object.Spec.NodeTemplate.Ansible.AnsibleVarsFrom)
		for _, n := range s.object.Spec.Nodes {
			note(n.Ansible.AnsibleVarsFrom)
		}
	}
	for name := range in.services {
		s := in.services[name]
		note(s.object.Spec.DataSources)
		for _, name := range s.object.Spec.ConfigMaps {
			named[name] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}
