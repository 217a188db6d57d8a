package novacell

import (
	"context"
	"errors"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

func migrationsJobName(cell string) string { return cell + "-online-migrations" }

// migratesData reports whether the cell migrates its data itself: a Nova does it for its cells, and
// without an API database nova-manage refuses to.
func (s *scope) migratesData() bool {
	return metav1.GetControllerOf(s.cell) == nil && s.withoutConductor() == "" && s.cell.Spec.APIDatabaseHostname != ""
}

// jobs are the names of the Jobs of the cell.
func (s *scope) jobs() []string {
	names := s.optionsJobs()
	if s.withoutConductor() == "" {
		names = append(names, databaseJobName(s.cell.Name))
	}
	if s.migratesData() {
		names = append(names, migrationsJobName(s.cell.Name))
	}
	return names
}

// migrateData is the phase that brings the data of the cell to the format of its schema, the last
// step of an update: services and computes of the former release would write rows in the former
// format, and nothing would migrate those. It does not halt, as others are told meanwhile who runs
// the present configuration.
func (s *scope) migrateData(ctx context.Context) error {
	err := s.runMigrations(ctx)
	var halt *phase.Halt
	mark := &s.cell.Status.Conditions
	switch {
	case errors.As(err, &halt):
		mark.MarkFalse(novav1.OnlineMigrationsReadyCondition, halt.Reason, halt.Severity, "%s", halt.Message)
	case err != nil:
		return err
	default:
		mark.MarkTrue(novav1.OnlineMigrationsReadyCondition, "The data of database %s has the format of the schema", s.cell.DatabaseName())
	}
	return nil
}

// runMigrations runs the Job once all services and computes of the cell run their images. If it
// has succeeded with these, pods that restart for another reason do not matter.
func (s *scope) runMigrations(ctx context.Context) error {
	t := novav1.OnlineMigrationsReadyCondition
	job, err := s.databaseJob(ctx, t, func(config nova.Config, snippets podified.Snippets) (*podified.Job, error) {
		return nova.OnlineMigrationsJob(migrationsJobName(s.cell.Name), s.cell.ShortName(), config, snippets)
	})
	if err != nil {
		return err
	}
	if awaited := s.awaited(); awaited != "" && !podified.HasSucceeded(s.cell, s.cell.Status.Jobs, job) {
		return phase.Waiting(t, novav1.UpdatingReason, "Waiting until %s. Data is migrated after that", awaited)
	}
	return s.Pods.RunJob(ctx, s.cell, t, s.cell.Status.Jobs, job)
}

// awaited says which services or computes of the cell do not run their image yet, empty if all do.
func (s *scope) awaited() string {
	deployed := s.cell.Status.Conditions.Get(condition.DeploymentReadyCondition)
	if deployed != nil && deployed.Status != "True" { // else there are no pods
		return "all pods of the services are ready: see condition " + string(condition.DeploymentReadyCondition)
	}
	return rollout.Lagging(s.cell, s.cell.Status.Images[novav1.ComputeComponent])
}
