package nova

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

const (
	// transportKey is where a cell finds its message bus.
	transportKey = "transport_url"
	// cellsFile tells apart configurations with other cells. No program reads it: the
	// API and the scheduler know the cells that are mapped when they start.
	cellsFile = "cells"
)

// components are the services of all cells, those that are not wanted included.
func (s *scope) components() []*nova.Component {
	spec, status := &s.nova.Spec, &s.nova.Status
	all := []*nova.Component{
		{
			Program: "nova-api-os-compute", Name: novav1.APIName(s.nova.Name), Field: "spec.apiServiceTemplate",
			Template: spec.APIServiceTemplate.NovaServiceTemplate, Image: s.apiImage(), Status: &status.API,
			Files: spec.APIServiceTemplate.FurtherFiles, Reads: furtherfiles.API,
			Port: nova.APIPort, Path: "/", TLS: spec.APIServiceTemplate.TLS,
		}, {
			Program: "nova-scheduler", Name: novav1.SchedulerName(s.nova.Name), Field: "spec.schedulerServiceTemplate",
			Template: spec.SchedulerServiceTemplate, Replicas: 1, Image: s.image(part{component: novav1.SchedulerComponent}), Status: &status.Scheduler,
		},
	}
	for _, c := range all {
		c.Template.ContainerImage = "" // chosen already
		c.TopologyRef, c.NodeSelector = topology.Nearest(spec.TopologyRef), spec.NodeSelector
	}
	return all
}

// wantsAPI reports whether the Nova runs an API. It prepares no database without:
// one that is there may be another API's, of another version.
func (s *scope) wantsAPI() bool { return s.nova.RunsAPI() }

// checkAPI returns a *phase.Halt that says what the API lacks.
func (s *scope) checkAPI(ctx context.Context) error {
	spec := s.nova.Spec
	for _, key := range []string{spec.PasswordSelectors.APIDatabase, spec.PasswordSelectors.CellDatabase} {
		if _, err := s.Inputs.SecretKey(ctx, s.nova.Namespace, spec.Secret, key); err != nil {
			return inputs.Halt(novav1.NovaAPIReadyCondition, err)
		}
	}
	zero, hasZero := spec.CellTemplates[novav1.Cell0Name]
	what := ""
	switch {
	case spec.APIDatabaseInstance == "":
		what = "spec.apiDatabaseInstance is empty: set it"
	case !hasZero || !zero.HasAPIAccess || zero.CellDatabaseInstance == "":
		what = "the API needs cell0, whose conductor is the super conductor: add it to spec.cellTemplates, with hasAPIAccess: true and cellDatabaseInstance"
	case spec.DatabaseTLS && spec.CABundleSecretName == "":
		what = "spec.databaseTLS needs the authorities of the databases: set spec.caBundleSecretName, or spec.databaseTLS to false"
	case s.apiImage() == "":
		return phase.Stalled(novav1.NovaAPIReadyCondition, common.ImageMissingReason, "%s", images.Missing("nova-api-os-compute"))
	default:
		return s.checkDatabases(ctx)
	}
	return phase.Stalled(novav1.NovaAPIReadyCondition, novav1.InvalidSpecReason, "%s, or spec.apiServiceTemplate.replicas to 0", what)
}

func (s *scope) apiImage() string { return s.image(part{component: novav1.APIComponent}) }

// apiInputs is the phase that finds what the API needs. Without it, it removes what
// there was.
func (s *scope) apiInputs(ctx context.Context) error {
	mark := &s.nova.Status.Conditions
	if !s.wantsAPI() {
		if err := s.Pods.Remove(ctx, s.nova, nil, nova.Bare(s.components())); err != nil {
			return err
		}
		if err := errors.Join(s.Pods.KeepJobs(ctx, s.nova, s.nova.Status.Jobs), s.Pods.KeepCronJobs(ctx, s.nova)); err != nil {
			return err
		}
		s.nova.Status.API, s.nova.Status.Scheduler, s.nova.Status.Jobs = nil, nil, nil
		mark.MarkTrue(novav1.NovaAPIReadyCondition, "The API is disabled. Set spec.apiServiceTemplate.replicas to enable it")
		return nil
	}
	for _, t := range append([]condition.Type{condition.DBSyncReadyCondition, novav1.NovaCellMappingsReadyCondition, novav1.OnlineMigrationsReadyCondition, novav1.NovaDBPurgeReadyCondition, novav1.NovaComputeServicesReadyCondition, condition.ServiceConfigReadyCondition}, podified.Conditions...) {
		mark.Set(condition.UnknownCondition(t, condition.InitReason, "Waiting for an earlier condition: see the conditions that are not True"))
	}
	if err := s.checkAPI(ctx); err != nil {
		return err
	}
	spec := s.nova.Spec
	config, err := s.cellConfig(ctx, novav1.NovaAPIReadyCondition, novav1.Cell0Name)
	if err != nil {
		return inputs.Halt(novav1.NovaAPIReadyCondition, err)
	}
	s.config = config
	mark.MarkTrue(novav1.NovaAPIReadyCondition, "The inputs of the API are ready; its database is %s on %s", spec.APIDatabaseName, s.host(spec.APIDatabaseInstance))
	return nil
}

// cellConfig is the configuration with the message bus and the database of a cell,
// and with the API database. What it waits for shows on condition t.
func (s *scope) cellConfig(ctx context.Context, t condition.Type, cell string) (nova.Config, error) {
	spec, template := s.nova.Spec, s.nova.Spec.CellTemplates[cell]
	transport, err := s.Inputs.SecretKey(ctx, s.nova.Namespace, s.bus(cell, template), transportKey)
	if err != nil {
		return nova.Config{}, err
	}
	var config nova.Config
	if err := config.ReadShared(ctx, s.Inputs, t, s.nova.Namespace, spec.SharedServices); err != nil {
		return config, err
	}
	url := strings.TrimRight(string(transport), "\r\n")
	queues := s.queues(cell, url)
	if !nova.IsChosen(queues, url) {
		return nova.Config{}, phase.Waiting(t, novav1.CellNotReadyReason,
			"Waiting until NovaCell %s knows which queues its message bus has: see its condition InputReady", novav1.CellName(s.nova.Name, cell))
	}
	database := cmp.Or(template.CellDatabaseName, novav1.CellDatabaseName(cell))
	config.Owner, config.TransportURL = "Nova "+s.nova.Name, url
	config.UseQueues(queues)
	config.KeystoneAuthURL, config.ServiceUser, config.Keystone = spec.KeystoneAuthURL, spec.ServiceUser, spec.Keystone
	config.ServicePassword = strings.TrimRight(string(s.passwords[novav1.ServicePasswordKey]), "\r\n")
	config.Connection = podified.MySQL(s.host(template.CellDatabaseInstance), cmp.Or(template.CellDatabaseUser, "nova"), string(s.passwords[novav1.CellDatabasePasswordKey]), database)
	config.APIConnection = podified.MySQL(s.host(spec.APIDatabaseInstance), spec.APIDatabaseUser, string(s.passwords[novav1.APIDatabasePasswordKey]), spec.APIDatabaseName)
	return config, nil
}

// queues returns how a cell uses its message bus, nil if it has not said so yet.
func (s *scope) queues(cell, transportURL string) *novav1.MessageBusStatus {
	for _, c := range s.cells {
		if c.ShortName() == cell {
			return nova.UsedQueues(c, transportURL, nil)
		}
	}
	return nil
}

// hasMixedQueues reports whether cells have different types of queues. Then services of one
// reach another one with options that are not its own: nova has one configuration for all
// message buses (nova/rpc.py, create_transport).
func (s *scope) hasMixedQueues() bool {
	found := map[bool]bool{}
	for _, cell := range s.withDatabase() {
		if queues := s.queues(cell, ""); queues != nil {
			found[queues.QuorumQueues] = true
		}
	}
	return len(found) > 1
}

// configured reports whether the API is to run.
func (s *scope) configured() bool { return s.config.APIConnection != "" }

// apiSnippets reads what people say of the configuration of the API, which Jobs on its
// database have too.
func (s *scope) apiSnippets(ctx context.Context) (podified.Snippets, error) {
	template := s.nova.Spec.APIServiceTemplate
	return podified.ReadSnippets(ctx, s.Inputs, identity.PodNova, s.nova.Namespace, "spec.apiServiceTemplate.customServiceConfig", template.CustomServiceConfig, template.CustomServiceConfigSecrets)
}

// syncDatabase is the phase that updates the schema of the API database.
func (s *scope) syncDatabase(ctx context.Context) error {
	if !s.configured() {
		return nil
	}
	if s.nova.Status.Jobs == nil {
		s.nova.Status.Jobs = map[string]string{}
	}
	names := append([]string{databaseJobName(s.nova.Name), discoveryJobName(s.nova.Name), allHostsJobName(s.nova.Name)}, s.optionsJobs()...)
	for cell := range s.nova.Spec.CellTemplates {
		names = append(names, mappingJobName(s.nova.Name, cell), migrationsJobName(s.nova.Name, cell))
	}
	for _, cell := range s.leaving {
		names = append(names, mappingJobName(s.nova.Name, cell.ShortName()))
	}
	if s.nova.Status.Deployed != nil {
		names = append(names, checkJobName(s.nova.Name))
	}
	if err := s.Pods.KeepJobs(ctx, s.nova, s.nova.Status.Jobs, names...); err != nil {
		return err
	}
	snippets, err := s.apiSnippets(ctx)
	if err != nil {
		return err
	}
	job, err := nova.APIDatabaseJob(names[0], s.nova.Spec.APIDatabaseName+" on "+s.host(s.nova.Spec.APIDatabaseInstance), s.config, snippets)
	if err != nil {
		return invalid(condition.DBSyncReadyCondition, err)
	}
	s.place(job)
	job.Image = part{component: novav1.APIComponent}.in(s.target()) // first of an update
	if err := s.Pods.RunJob(ctx, s.nova, condition.DBSyncReadyCondition, s.nova.Status.Jobs, job); err != nil {
		return err
	}
	s.nova.Status.Conditions.MarkTrue(condition.DBSyncReadyCondition, "The schema of database %s is up to date", s.nova.Spec.APIDatabaseName)
	return nil
}

// deploy is the phase that runs the services. They are started again when other
// cells are mapped: before, they do not know them.
func (s *scope) deploy(ctx context.Context) error {
	if !s.configured() {
		return nil
	}
	mapped := map[string]string{}
	cells := slices.Collect(maps.Keys(s.nova.Spec.CellTemplates))
	for _, leaving := range s.leaving {
		cells = append(cells, leaving.ShortName())
	}
	for _, cell := range cells {
		if hash := s.nova.Status.Jobs[mappingJobName(s.nova.Name, cell)]; hash != "" {
			mapped[cell] = hash
		}
	}
	return nova.Deploy(ctx, s.Pods, s.nova, s.components(), s.config, map[string][]byte{cellsFile: []byte(fmt.Sprint(mapped))}, s.Known.JudgeWritten)
}
