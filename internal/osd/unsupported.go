package osd

import (
	"fmt"
	"reflect"
	"strings"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Ignored returns the fields of ocs-operator that the spec has and that have no effect.
func Ignored(spec *ocsv1.StorageClusterSpec) []string {
	ignored := present("spec", spec.UnsupportedFields)
	ignored = append(ignored, present("spec.encryption", spec.Encryption.UnsupportedEncryptionFields)...)
	if t := spec.NodeTopologies; t != nil && t.Labels != nil {
		ignored = append(ignored, "spec.nodeTopologies.labels") // they are read from the nodes
	}
	return append(ignored, present("spec.arbiter", spec.Arbiter.UnsupportedArbiterFields)...)
}

// Unsupported returns the fields of ocs-operator without which OSDs would be others than
// those that the spec asks for.
func Unsupported(spec *ocsv1.StorageClusterSpec) []string {
	var unsupported []string
	for i := range spec.StorageDeviceSets {
		unsupported = append(unsupported, present(fmt.Sprintf("spec.storageDeviceSets[%d]", i), spec.StorageDeviceSets[i].UnsupportedSetFields)...)
	}
	return unsupported
}

// present returns the paths of the fields of a struct of pointers that are set.
func present(at string, fields any) []string {
	var paths []string
	for field, value := range reflect.ValueOf(fields).Fields() {
		if !value.IsNil() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			paths = append(paths, at+"."+name)
		}
	}
	return paths
}
