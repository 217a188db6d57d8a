// Package topology applies a Topology to the pods of a service and keeps it from
// going while a user refers to it. Every controller whose objects have a
// topologyRef uses it in the same way:
//
//	ref := topology.Nearest(api.Spec.TopologyRef, glance.Spec.TopologyRef)
//	t, err := topology.Use(ctx, c, api, ref, api.Status.LastAppliedTopology)
//	if err != nil {
//		return err // a *phase.Halt when the Topology cannot be had
//	}
//	api.Status.LastAppliedTopology = ref
//	template.Spec.Affinity = topology.Default("glance")
//	topology.Apply(&template, t, selector, topology.Consumer{Kind: "GlanceAPI", Name: api.Name})
//
// and watches with Users. What protects a Topology from deletion is in protect.go.
package topology
