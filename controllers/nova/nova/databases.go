package nova

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// databaseIndex holds the databases of a Nova that runs an API.
const databaseIndex = "nova.databases"

// databasesOf are the API database and those of the cells, as name on host, sorted. A
// Nova without an API has none: they are another API's.
func databasesOf(obj client.Object) []string {
	s := scopeOf(obj)
	if !s.wantsAPI() {
		return nil
	}
	spec := s.nova.Spec
	all := []string{fmt.Sprintf("%s on %s", spec.APIDatabaseName, s.host(spec.APIDatabaseInstance))}
	for _, cell := range s.withDatabase() {
		template := spec.CellTemplates[cell]
		all = append(all, fmt.Sprintf("%s on %s", cmp.Or(template.CellDatabaseName, novav1.CellDatabaseName(cell)), s.host(template.CellDatabaseInstance)))
	}
	slices.Sort(all)
	return all
}

// checkDatabases returns a *phase.Halt if a database is used twice. Of two Novas the one
// that was created first has it.
func (s *scope) checkDatabases(ctx context.Context) error {
	all := databasesOf(s.nova)
	for i, database := range all {
		if i > 0 && all[i-1] == database {
			return phase.Stalled(novav1.NovaAPIReadyCondition, novav1.DatabaseConflictReason,
				"Database %s is used twice by this Nova: set another spec.apiDatabaseName or cellDatabaseName", database)
		}
		others, err := s.users(ctx, s.nova.Namespace, database)
		if err != nil {
			return err
		}
		for i := range others {
			if other := &others[i]; older(other, s.nova) {
				return phase.Stalled(novav1.NovaAPIReadyCondition, novav1.DatabaseConflictReason,
					"Database %s is that of Nova %s: set spec.apiDatabaseName, and cellDatabaseName of each cell, to names of other databases", database, other.Name)
			}
		}
	}
	return nil
}

// users are the Novas that have a database.
func (r *Reconciler) users(ctx context.Context, namespace, database string) ([]novav1.Nova, error) {
	list := &novav1.NovaList{}
	if err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{databaseIndex: database}); err != nil {
		return nil, fmt.Errorf("listing the Novas with database %s: %w", database, err)
	}
	return list.Items, nil
}

// older reports whether a Nova was created before another one.
func older(a, b *novav1.Nova) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// rivals are the other Novas that have a database of a Nova.
func (r *Reconciler) rivals(ctx context.Context, nova client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, database := range databasesOf(nova) {
		others, err := r.users(ctx, nova.GetNamespace(), database)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to find other Novas with the same database")
			return nil
		}
		for i := range others {
			if others[i].Name != nova.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&others[i])})
			}
		}
	}
	return requests
}
