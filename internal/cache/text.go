package cache

import (
	"slices"
	"unique"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// shareText lets a cached object share the texts that thousands of others have as
// well: what its conditions say, by which runs its ledger came to be, and whose it is.
// Each was decoded into memory of its own. Cached objects are not changed.
func shareText(obj any) {
	if o, ok := obj.(metav1.Object); ok {
		shareMeta(o)
	}
	if o, ok := obj.(interface{ GetConditions() *condition.Conditions }); ok {
		shareConditions(o.GetConditions())
	}
	if o, ok := obj.(interface{ GetLedger() *common.Ledger }); ok {
		shareLedger(o.GetLedger())
	}
	if o, ok := obj.(interface {
		Hosted() (*hostedv1.ServiceSpec, *hostedv1.ServiceStatus)
	}); ok {
		spec, _ := o.Hosted()
		share(&spec.SSHKeySecretName)
		if spec.JumpHost != nil {
			share(&spec.JumpHost.HostKey)
		}
		share(&spec.AnsibleEEContainerImage)
	}
	if o, ok := obj.(*novav1.NovaExternalCompute); ok {
		share(&o.Spec.CellName)
		share(&o.Spec.NovaComputeContainerImage)
		share(&o.Spec.NovaLibvirtContainerImage)
	}
}

// share replaces a text by the one copy of it that is kept while a user has it.
func share[T ~string](text *T) {
	if *text != "" {
		*text = unique.Make(*text).Value()
	}
}

func shareMeta(o metav1.Object) {
	namespace, finalizers, owners := o.GetNamespace(), o.GetFinalizers(), o.GetOwnerReferences()
	share(&namespace)
	o.SetNamespace(namespace)
	for i := range finalizers {
		share(&finalizers[i])
	}
	for i := range owners {
		share(&owners[i].APIVersion)
		share(&owners[i].Kind)
	}
}

// shareConditions also gives back the room for more of them that decoding leaves.
func shareConditions(conditions *condition.Conditions) {
	*conditions = slices.Concat(*conditions)
	for i := range *conditions {
		c := &(*conditions)[i]
		share(&c.Type)
		share(&c.Status)
		share(&c.Severity)
		share(&c.Reason)
		share(&c.Message)
	}
}

func shareLedger(l *common.Ledger) {
	l.Hash = sharedKeys(l.Hash)
	l.Runs = sharedKeys(l.Runs)
	for step, run := range l.Runs {
		share(&run.Name)
		l.Runs[step] = run
	}
}

// sharedKeys returns a map with the same content.
func sharedKeys[V any](m map[string]V) map[string]V {
	if m == nil {
		return nil
	}
	shared := make(map[string]V, len(m))
	for key, value := range m {
		share(&key)
		shared[key] = value
	}
	return shared
}
