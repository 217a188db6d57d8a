package osd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// classKey is a device class, and the label by whose values its OSDs are spread.
type classKey struct{ class, key string }

// UnevenClasses says of each device class which domains have none of its OSDs while
// another one has several. In mode SeedPhase1 the OSDs of all classes are spread together,
// so that each domain has as many in all: a pool of one class, with a copy in each
// domain, needs the class in all of them.
func UnevenClasses(plan []DeviceSet, projections []Projection) []string {
	domains := map[classKey]map[string]int{}
	for i := range plan {
		if len(plan[i].Parts) == 0 {
			continue
		}
		of := classKey{deviceClassOf(&plan[i].Parts[0]), plan[i].Key}
		if domains[of] == nil {
			domains[of] = map[string]int{}
		}
		for domain, n := range projections[i].Domains {
			if domain != NoDomain {
				domains[of][domain] += n
			}
		}
	}
	if len(domains) < 2 {
		return nil // one class is spread by itself
	}
	var texts []string
	for of, counts := range domains {
		if text := uneven(of, counts); text != "" {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// uneven says which domains lack a class that another domain has more than once.
func uneven(of classKey, counts map[string]int) string {
	var lacking, all []string
	most := 0
	for _, domain := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", domain, counts[domain]))
		if most = max(most, counts[domain]); counts[domain] == 0 {
			lacking = append(lacking, domain)
		}
	}
	if len(lacking) == 0 || most < 2 {
		return ""
	}
	class := "without a device class"
	if of.class != "" {
		class = "of device class " + of.class
	}
	return fmt.Sprintf("%s %s has no OSD %s (%s)", of.key, strings.Join(lacking, ", "), class, strings.Join(all, ", "))
}
