package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourceList is a flag with quantities of resources: cpu=250m,memory=512Mi.
type resourceList corev1.ResourceList

// String is what Set takes.
func (l *resourceList) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*l)) {
		quantity := (*l)[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, quantity.String()))
	}
	return strings.Join(parts, ",")
}

// Set takes the place of the whole list. The error says which part is wrong.
func (l *resourceList) Set(text string) error {
	list := resourceList{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		quantity, err := resource.ParseQuantity(value)
		if !found || name == "" || err != nil || quantity.Sign() < 0 {
			return fmt.Errorf("%q is not a resource with a quantity: set for example cpu=250m,memory=512Mi", part)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	*l = list
	return nil
}
