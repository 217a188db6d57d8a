package nova

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

func databaseJobName(nova string) string { return nova + "-api-db-sync" }

// mappingJobName is that of the Job that maps a cell, and of the one that removes its
// mapping: the two never run at once.
func mappingJobName(nova, cell string) string { return novav1.CellName(nova, cell) + "-mapping" }

func migrationsJobName(nova, cell string) string {
	return novav1.CellName(nova, cell) + "-online-migrations"
}

func purgeJobName(nova, cell string) string { return novav1.CellName(nova, cell) + "-db-purge" }

// run runs a Job where the API runs.
func (s *scope) run(ctx context.Context, t condition.Type, job *podified.Job, err error) error {
	if err != nil {
		return invalid(t, err)
	}
	s.place(job)
	return s.Pods.RunJob(ctx, s.nova, t, s.nova.Status.Jobs, job)
}

func invalid(t condition.Type, err error) error {
	return phase.Stalled(t, novav1.InvalidConfigReason, "%v: check the Secrets of the Nova", err)
}

// place has a Job run where the API runs.
func (s *scope) place(job *podified.Job) {
	template := s.nova.Spec.APIServiceTemplate
	job.Image, job.Resources, job.NetworkAttachments = s.apiImage(), template.Resources, template.NetworkAttachments
	job.NodeSelector = podified.Selected(cmp.Or(template.NodeSelector, s.nova.Spec.NodeSelector))
}

// worst is the first *phase.Halt among errors, and the first other error.
type worst struct {
	halt *phase.Halt
	err  error
}

func (w *worst) add(err error) {
	var halt *phase.Halt
	if errors.As(err, &halt) {
		w.halt = cmp.Or(w.halt, halt)
		return
	}
	w.err = cmp.Or(w.err, err)
}

// withDatabase are the short names of the cells whose database is known, sorted. Who
// runs the conductors of the others maps them.
func (s *scope) withDatabase() []string {
	names := slices.Sorted(maps.Keys(s.nova.Spec.CellTemplates))
	return slices.DeleteFunc(names, func(cell string) bool { return s.nova.Spec.CellTemplates[cell].CellDatabaseInstance == "" })
}

// mapped reports whether a cell was mapped.
func (s *scope) mapped(cell string) bool {
	return s.nova.Status.Jobs[mappingJobName(s.nova.Name, cell)] != ""
}

// mapCells is the phase that makes the cells known to the API, and those unknown that
// are to be removed. A cell for which that fails keeps no other from it, and the API from
// nothing.
func (s *scope) mapCells(ctx context.Context) error {
	if !s.configured() {
		return nil
	}
	var w worst
	s.mappings = map[string][]byte{}
	for _, cell := range s.withDatabase() {
		w.add(s.mapCell(ctx, cell))
	}
	for _, cell := range s.leaving {
		w.add(s.unmapCell(ctx, cell))
	}
	mark := &s.nova.Status.Conditions
	switch {
	case w.err != nil:
		return w.err
	case w.halt == nil:
		mark.MarkTrue(novav1.NovaCellMappingsReadyCondition, "All cells with a database are mapped")
		s.noteMappings(ctx)
		return nil
	}
	mark.MarkFalse(novav1.NovaCellMappingsReadyCondition, w.halt.Reason, w.halt.Severity, "%s", w.halt.Message)
	if !s.mapped(novav1.Cell0Name) {
		return w.halt // without cell0 the API does not work
	}
	return nil
}

// mapCell maps a cell whose database has its schema. API and scheduler are restarted for
// it, which has to wait until an update that changes something is complete.
func (s *scope) mapCell(ctx context.Context, cell string) error {
	if s.nova.Status.UpgradeCheck != nil && s.mapped(cell) {
		return nil
	}
	if !slices.ContainsFunc(s.cells, func(c *novav1.NovaCell) bool { return c.Name == novav1.CellName(s.nova.Name, cell) && synced(c) }) {
		return phase.Waiting(novav1.NovaCellMappingsReadyCondition, novav1.CellNotReadyReason,
			"Waiting until the database of NovaCell %s is up to date: see its condition %s", novav1.CellName(s.nova.Name, cell), condition.DBSyncReadyCondition)
	}
	config, err := s.cellConfig(ctx, novav1.NovaCellMappingsReadyCondition, cell)
	if err != nil {
		return inputs.Halt(novav1.NovaCellMappingsReadyCondition, err)
	}
	if cell != novav1.Cell0Name && s.hasMixedQueues() { // cell0 is mapped without a message bus
		config.TransportURL = nova.WithQueues(config.TransportURL, config.QuorumQueues)
	}
	job, err := nova.MappingJob(mappingJobName(s.nova.Name, cell), cell, config)
	if err := s.run(ctx, novav1.NovaCellMappingsReadyCondition, job, err); err != nil {
		return err
	}
	s.mappings[cell] = config.Mapping()
	return nil
}

// noteMappings notes by what all cells are mapped, and whether that has changed since they were
// first.
func (s *scope) noteMappings(ctx context.Context) {
	id, status := inputs.Digest(s.mappings)[:32], &s.nova.Status
	if len(s.mappings) < len(s.withDatabase()) || status.CellMappings == id {
		return
	}
	if status.CellMappings != "" {
		status.ChangedMappings = id
		phase.Soon(ctx)
	}
	status.CellMappings = id
}

// unmapCell removes the mapping of a cell, and then the cell. Its conductor runs until
// then: instances can be deleted.
func (s *scope) unmapCell(ctx context.Context, cell *novav1.NovaCell) error {
	name, config := mappingJobName(s.nova.Name, cell.ShortName()), s.config
	config.Connection = podified.MySQL(cell.Spec.CellDatabaseHostname, cell.Spec.CellDatabaseUser, string(s.passwords[novav1.CellDatabasePasswordKey]), cell.DatabaseName())
	job, err := nova.UnmappingJob(name, cell.ShortName(), config)
	if err := s.run(ctx, novav1.NovaCellMappingsReadyCondition, job, err); err != nil {
		return err
	}
	if err := apply.Delete(ctx, s.Client, s.nova, cell, apply.Own); err != nil {
		return err
	}
	delete(s.nova.Status.Jobs, name)
	s.leaving = slices.DeleteFunc(slices.Clone(s.leaving), func(c *novav1.NovaCell) bool { return c == cell })
	return nil
}

// migrateData is the phase that brings the data of mapped cells to the format of their
// schema. During an update that changes something that is the last step. Nothing else waits
// for it.
func (s *scope) migrateData(ctx context.Context) error {
	if status := s.nova.Status; !s.configured() || status.Deployed != nil && status.UpgradeCheck != nil && !s.reached {
		return nil
	}
	w, mark := s.migrateCells(ctx), &s.nova.Status.Conditions
	switch {
	case w.err != nil:
		return w.err
	case w.halt != nil:
		mark.MarkFalse(novav1.OnlineMigrationsReadyCondition, w.halt.Reason, w.halt.Severity, "%s", w.halt.Message)
		return nil //nolint:nilerr // the condition says so
	}
	mark.MarkTrue(novav1.OnlineMigrationsReadyCondition, "The data of every mapped cell has the format of the schema")
	if s.reached && s.finishUpdate() {
		return s.mapCells(ctx) // which waited for that
	}
	return nil
}

// migrateCells brings the data of all mapped cells to the format of their schema.
func (s *scope) migrateCells(ctx context.Context) worst {
	if s.migrated == nil {
		s.migrated = &worst{}
		for _, cell := range s.withDatabase() {
			if s.mapped(cell) {
				s.migrated.add(s.migrateCell(ctx, cell))
			}
		}
	}
	return *s.migrated
}

func (s *scope) migrateCell(ctx context.Context, cell string) error {
	config, err := s.cellConfig(ctx, novav1.OnlineMigrationsReadyCondition, cell)
	if err != nil {
		return inputs.Halt(novav1.OnlineMigrationsReadyCondition, err)
	}
	job, err := nova.OnlineMigrationsJob(migrationsJobName(s.nova.Name, cell), cell, config, podified.Snippets{})
	return s.run(ctx, novav1.OnlineMigrationsReadyCondition, job, err)
}

// purgeDatabases is the phase that has rows of deleted instances removed from the
// databases of the cells. Nothing waits for that, and the Nova is Ready while it runs.
func (s *scope) purgeDatabases(ctx context.Context) error {
	if !s.configured() {
		return nil
	}
	var w worst
	var names []string
	for _, cell := range s.withDatabase() {
		names = append(names, purgeJobName(s.nova.Name, cell))
		if s.mapped(cell) {
			w.add(s.purgeDatabase(ctx, cell))
		}
	}
	w.add(s.Pods.KeepCronJobs(ctx, s.nova, names...))
	mark := &s.nova.Status.Conditions
	switch {
	case w.err != nil:
		return w.err
	case w.halt == nil:
		mark.MarkTrue(novav1.NovaDBPurgeReadyCondition, "Rows of deleted instances are removed from the databases of the cells as scheduled")
	case w.halt.Severity == condition.SeverityInfo:
		mark.MarkTrue(novav1.NovaDBPurgeReadyCondition, "%s", w.halt.Message)
	default:
		mark.MarkFalse(novav1.NovaDBPurgeReadyCondition, w.halt.Reason, w.halt.Severity, "%s", w.halt.Message)
	}
	return nil
}

func (s *scope) purgeDatabase(ctx context.Context, cell string) error {
	config, err := s.cellConfig(ctx, novav1.NovaDBPurgeReadyCondition, cell)
	if err != nil {
		return inputs.Halt(novav1.NovaDBPurgeReadyCondition, err)
	}
	job, err := nova.PurgeCronJob(purgeJobName(s.nova.Name, cell), cell, s.nova.Spec.CellTemplates[cell].DBPurge, config)
	if err != nil {
		return invalid(novav1.NovaDBPurgeReadyCondition, err)
	}
	s.place(&job.Job)
	return s.Pods.RunCronJob(ctx, s.nova, novav1.NovaDBPurgeReadyCondition, job)
}
