// Code generated from internal/kinds by hack/kinds: run make manifests. DO NOT EDIT.

package main

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=edpmserviceclasses.edpm.openstack.org;edpmservices.edpm.openstack.org;glanceapis.glance.openstack.org;glances.glance.openstack.org;nova.nova.openstack.org;novacells.nova.openstack.org;novacomputes.nova.openstack.org;novaexternalcomputes.nova.openstack.org;openstackansibleees.ansibleee.openstack.org;openstackcontrolplanes.core.openstack.org;openstackdataplanenodes.dataplane.openstack.org;openstackdataplaneroles.dataplane.openstack.org;openstackdataplanes.dataplane.openstack.org;openstackdataplaneservices.dataplane.openstack.org;ovncontrollers.neutron.openstack.org;ovnmetadataagents.neutron.openstack.org;storageclusters.ocs.openshift.io;topologies.topology.openstack.org,verbs=list;watch
