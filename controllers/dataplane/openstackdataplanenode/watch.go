package openstackdataplanenode

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Field indexes.
const (
	inputIndex    = "dataplane.inputs"
	servicesIndex = "dataplane.services"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	node, role, service := &dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}, &dataplanev1.OpenStackDataPlaneService{}
	for _, i := range []struct {
		obj     client.Object
		name    string
		extract client.IndexerFunc
	}{
		{node, inputIndex, func(o client.Object) []string {
			node := o.(*dataplanev1.OpenStackDataPlaneNode)
			// Each node reads that ConfigMap, if it exists.
			return append(sectionInputs(node.Spec.Node, node.Spec.Env), "ConfigMap/"+ansibleeev1.DefaultEnvConfigMap)
		}},
		{role, inputIndex, func(o client.Object) []string {
			spec := o.(*dataplanev1.OpenStackDataPlaneRole).Spec
			return sectionInputs(spec.NodeTemplate, spec.Env)
		}},
		{role, servicesIndex, func(o client.Object) []string { return o.(*dataplanev1.OpenStackDataPlaneRole).Spec.Services }},
		{service, inputIndex, func(o client.Object) []string {
			return serviceInputs(o.(*dataplanev1.OpenStackDataPlaneService).Spec)
		}},
		{node, topology.RefIndex, topology.Referred},
		// The controller of roles uses it as well.
		{role, topology.RefIndex, topology.Referred},
	} {
		if err := indexer.IndexField(ctx, i.obj, i.name, i.extract); err != nil {
			return err
		}
	}
	return nil
}

// sectionInputs are the Secrets and ConfigMaps that a role or node names.
func sectionInputs(section dataplanev1.NodeSection, env []corev1.EnvVar) []string {
	names := inputs.EnvNames(env)
	if section.AnsibleSSHPrivateKeySecret != "" {
		names = append(names, "Secret/"+section.AnsibleSSHPrivateKeySecret)
	}
	names = append(names, dataplane.JumpInputs(section.JumpHost)...)
	for _, ref := range mountRefs(section.ExtraMounts) {
		names = append(names, ref.kind+"/"+ref.name)
	}
	return names
}

func serviceInputs(spec dataplanev1.OpenStackDataPlaneServiceSpec) []string {
	var names []string
	for _, n := range spec.ConfigMaps {
		names = append(names, "ConfigMap/"+n)
	}
	for _, n := range spec.Secrets {
		names = append(names, "Secret/"+n)
	}
	return names
}

// mountRef is a Secret or ConfigMap that an extra mount takes its content from.
type mountRef struct{ kind, name string }

func mountRefs(mounts []ansibleeev1.ExtraMount) []mountRef {
	var refs []mountRef
	for _, m := range mounts {
		for _, v := range m.Volumes {
			if v.Secret != nil {
				refs = append(refs, mountRef{"Secret", v.Secret.SecretName})
			}
			if v.ConfigMap != nil {
				refs = append(refs, mountRef{"ConfigMap", v.ConfigMap.Name})
			}
			if v.Projected != nil {
				refs = append(refs, projectedRefs(v)...)
			}
		}
	}
	return refs
}

func projectedRefs(v ansibleeev1.ExtraVolume) []mountRef {
	var refs []mountRef
	for _, src := range v.Projected.Sources {
		if src.Secret != nil {
			refs = append(refs, mountRef{"Secret", src.Secret.Name})
		}
		if src.ConfigMap != nil {
			refs = append(refs, mountRef{"ConfigMap", src.ConfigMap.Name})
		}
	}
	return refs
}

// nodeOfInventory maps a ConfigMap to the node whose inventory has its name,
// whosever it is.
func nodeOfInventory(_ context.Context, cm client.Object) []reconcile.Request {
	node, found := strings.CutPrefix(cm.GetName(), dataplane.InventoryName(""))
	if !found {
		return nil
	}
	return watch.NamedOrOwned(cm, node, Kind)
}

func (r *Reconciler) nodesOfRole(ctx context.Context, role client.Object) []reconcile.Request {
	members, err := dataplane.NodesOfRole(ctx, r.Client, role.GetNamespace(), role.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the nodes of a role")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(members))
	for i := range members {
		requests = append(requests, watch.Request(role.GetNamespace(), members[i].Name))
	}
	return requests
}

func (r *Reconciler) nodesOfService(ctx context.Context, service client.Object) []reconcile.Request {
	roles := &dataplanev1.OpenStackDataPlaneRoleList{}
	if err := r.List(ctx, roles, client.InNamespace(service.GetNamespace()), client.MatchingFields{servicesIndex: service.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the roles with a service")
		return nil
	}
	var requests []reconcile.Request
	for i := range roles.Items {
		requests = append(requests, r.nodesOfRole(ctx, &roles.Items[i])...)
	}
	return requests
}

// nodesOfTopology maps a Topology to the nodes that refer to it, themselves or
// through their role.
func (r *Reconciler) nodesOfTopology(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.namedBy(ctx, obj.GetNamespace(), client.MatchingFields{topology.RefIndex: obj.GetName()})
}

// usersOf maps a Secret or ConfigMap to the nodes that it is an input of:
// directly, through their role, or through a service of their role.
func (r *Reconciler) usersOf(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		index := client.MatchingFields{inputIndex: kind + "/" + obj.GetName()}
		requests := r.namedBy(ctx, obj.GetNamespace(), index)
		services := &dataplanev1.OpenStackDataPlaneServiceList{}
		if err := r.List(ctx, services, client.InNamespace(obj.GetNamespace()), index); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the services with an input")
			return requests
		}
		for i := range services.Items {
			requests = append(requests, r.nodesOfService(ctx, &services.Items[i])...)
		}
		return requests
	}
}

// namedBy returns the nodes that an index finds, and those of the roles that it
// finds.
func (r *Reconciler) namedBy(ctx context.Context, namespace string, index client.MatchingFields) []reconcile.Request {
	direct, roles := &dataplanev1.OpenStackDataPlaneNodeList{}, &dataplanev1.OpenStackDataPlaneRoleList{}
	for _, list := range []client.ObjectList{direct, roles} {
		if err := r.List(ctx, list, client.InNamespace(namespace), index); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the nodes and roles that name an object")
			return nil
		}
	}
	var requests []reconcile.Request
	for i := range direct.Items {
		requests = append(requests, watch.Request(namespace, direct.Items[i].Name))
	}
	for i := range roles.Items {
		requests = append(requests, r.nodesOfRole(ctx, &roles.Items[i])...)
	}
	return requests
}
