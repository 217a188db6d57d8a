// Package nodesets reads what people have of openstack-operator: OpenStackDataPlaneNodeSets,
// -Services and -Deployments with the ConfigMaps that they name, and says what they are here:
// objects to review and apply, and a report that has a line for each field. Data flows one
// way: Inputs are read, a Plan is made of them, and both halves of it are printed.
//
// Nothing is dropped in silence. What has no counterpart is reported with a remedy and left
// out of the objects, so that what is left is what admission takes. Of a Secret only the name
// is ever read.
//
// Two tables say what becomes of variables and services: variables.yaml and services.yaml,
// with names from edpm-ansible and openstack-operator at the commits that they name.
package nodesets
