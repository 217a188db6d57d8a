package novacell

import (
	"cmp"
	"context"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

func databaseJobName(cell string) string { return cell + "-db-sync" }

// components are the services of a cell in pods, those that are not wanted included.
func (s *scope) components() []*nova.Component {
	spec, status := &s.cell.Spec, &s.cell.Status
	all := []*nova.Component{
		{
			Program: "nova-conductor", Name: novav1.ConductorName(s.cell.Name), Field: "spec.conductorServiceTemplate",
			Template: spec.ConductorServiceTemplate.NovaServiceTemplate, Replicas: 1, Image: s.image(),
			TopologyRef: topology.Nearest(spec.ConductorServiceTemplate.TopologyRef, spec.TopologyRef), Status: &status.Conductor,
		}, {
			Program: "nova-api-metadata", Name: novav1.MetadataName(s.cell.Name), Field: "spec.metadataServiceTemplate",
			Template: spec.MetadataServiceTemplate.NovaServiceTemplate, Image: status.Images[novav1.MetadataComponent],
			TopologyRef: topology.Nearest(spec.TopologyRef), Status: &status.Metadata,
			Files: spec.MetadataServiceTemplate.FurtherFiles, Reads: furtherfiles.Metadata,
			Port: nova.MetadataPort, Path: "/", TLS: spec.MetadataServiceTemplate.TLS,
		}, {
			Program: "nova-novncproxy", Name: novav1.NoVNCProxyName(s.cell.Name), Field: "spec.noVNCProxyServiceTemplate",
			Template: spec.NoVNCProxyServiceTemplate.NovaServiceTemplate, Image: status.Images[novav1.NoVNCProxyComponent],
			TopologyRef: topology.Nearest(spec.TopologyRef), Status: &status.NoVNCProxy,
			Files: spec.NoVNCProxyServiceTemplate.FurtherFiles, Reads: furtherfiles.NoVNCProxy,
			Port: nova.NoVNCProxyPort, TLS: spec.NoVNCProxyServiceTemplate.TLS, Consoles: s.proxyCertificate,
		},
	}
	for _, c := range all {
		c.Cell, c.NodeSelector = s.cell.ShortName(), spec.NodeSelector
	}
	return all
}

// chooseImages is the phase that chooses the images of the cell. A Nova names those of its
// cells.
func (s *scope) chooseImages(ctx context.Context) error {
	name, spec, before := s.cell.Name, s.cell.Spec, s.cell.Status.Images[novav1.ComputeComponent]
	compute := podified.Component{Spec: spec.NovaComputeContainerImage, Default: s.Images.NovaCompute}
	if before == "" {
		present, err := rollout.Present(ctx, s.Client, s.cell.Namespace, name)
		if err != nil {
			return err
		}
		compute.Default = cmp.Or(present, compute.Default)
	}
	err := podified.ChooseImages(ctx, s.Client, s.cell, map[string]podified.Component{
		novav1.ConductorComponent: {
			Spec: spec.ConductorServiceTemplate.ContainerImage, Default: s.Images.NovaConductor,
			Sets: []string{novav1.ConductorName(name)}, Job: databaseJobName(name),
		},
		novav1.MetadataComponent:   {Spec: spec.MetadataServiceTemplate.ContainerImage, Default: s.Images.NovaAPI, Sets: []string{novav1.MetadataName(name)}},
		novav1.NoVNCProxyComponent: {Spec: spec.NoVNCProxyServiceTemplate.ContainerImage, Default: s.Images.NovaNoVNC, Sets: []string{novav1.NoVNCProxyName(name)}},
		novav1.ComputeComponent:    compute,
	})
	if err == nil {
		rollout.Begin(s.cell, before)
	}
	return err
}

// countComputes is the phase that counts the computes, brings their update forward, and says
// which of those on hosts let one another in.
func (s *scope) countComputes(ctx context.Context) error {
	computes := &novav1.NovaExternalComputeList{}
	ofCell := client.MatchingFields{"spec.cellName": s.cell.Name}
	if err := s.List(ctx, computes, client.InNamespace(s.cell.Namespace), ofCell, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the computes of the cell: %w", err)
	}
	inPods := &novav1.NovaComputeList{}
	if err := s.List(ctx, inPods, client.InNamespace(s.cell.Namespace), ofCell, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the computes of the cell in pods: %w", err)
	}
	s.computes, s.inPods = computes.Items, inPods.Items
	if err := s.advanceComputes(ctx); err != nil {
		return err
	}
	rollout.Sum(s.cell, s.computes, s.inPods)
	migration.Settle(s.cell, computes.Items)
	return nil
}

// advanceComputes brings the update of the computes forward, in a cell without a Nova once the
// conductor runs its new image, and so the schema has its new version: a Nova names the image of the
// computes when their turn in the order of nova has come.
func (s *scope) advanceComputes(ctx context.Context) error {
	if metav1.GetControllerOf(s.cell) == nil && s.withoutConductor() == "" {
		lagging, err := podified.Lagging(ctx, s.Client, s.cell.Namespace, novav1.ConductorName(s.cell.Name), s.image())
		if lagging != "" || err != nil {
			return err
		}
	}
	rollout.Advance(s.cell, s.computes)
	return nil
}

func (s *scope) image() string { return s.cell.Status.Images[novav1.ConductorComponent] }

// withoutConductor says why the cell has no conductor, and how it gets one;
// empty when it has one. Computes on hosts can be configured either way: the
// conductor may run elsewhere.
func (s *scope) withoutConductor() string {
	if s.cell.Spec.CellDatabaseHostname == "" {
		return "spec.cellDatabaseHostname is empty; to run one, set it and the key " + novav1.CellDatabasePasswordKey + " of the Secret"
	}
	return ""
}

// databases is the phase that finds the databases of the cell. Without one it ends
// what needs it.
func (s *scope) databases(ctx context.Context) error {
	if why := s.withoutConductor(); why != "" {
		if err := s.Pods.Remove(ctx, s.cell, nil, nova.Bare(s.components())); err != nil {
			return err
		}
		status := &s.cell.Status
		if err := s.Pods.KeepJobs(ctx, s.cell, status.Jobs, s.jobs()...); err != nil {
			return err
		}
		status.Conductor, status.Metadata, status.NoVNCProxy = nil, nil, nil
		s.cell.Status.Conditions.MarkTrue(novav1.NovaConductorReadyCondition, "No conductor runs in this cell: %s", why)
		return nil
	}
	if s.image() == "" {
		return phase.Stalled(novav1.NovaConductorReadyCondition, common.ImageMissingReason, "%s", images.Missing("nova-conductor"))
	}
	spec := s.cell.Spec
	var err error
	user := s.user(novav1.CellDatabaseUserKey, spec.CellDatabaseUser)
	if s.config.Connection, err = s.database(spec.CellDatabaseHostname, user, novav1.CellDatabasePasswordKey, s.cell.DatabaseName()); err != nil {
		return err
	}
	if spec.APIDatabaseHostname != "" {
		user := s.user(novav1.APIDatabaseUserKey, spec.APIDatabaseUser)
		if s.config.APIConnection, err = s.database(spec.APIDatabaseHostname, user, novav1.APIDatabasePasswordKey, cmp.Or(spec.APIDatabaseName, "nova_api")); err != nil {
			return err
		}
	}
	if err := s.metadataSecret(); err != nil {
		return err
	}
	s.cell.Status.Conditions.MarkTrue(novav1.NovaConductorReadyCondition, "The inputs of the conductor are ready")
	return nil
}

// database is the connection to a database whose password is in the Secret.
func (s *scope) database(host, user, key, name string) (string, error) {
	password, err := inputs.Value(s.cell.Spec.Secret, s.secret, key)
	if err != nil {
		return "", inputs.Halt(novav1.NovaConductorReadyCondition, err)
	}
	return podified.MySQL(host, user, string(password), name), nil
}

// metadataSecret reads what the metadata service shares with neutron, if it runs.
func (s *scope) metadataSecret() error {
	for _, c := range s.components() {
		if c.Port != nova.MetadataPort || !c.Wanted() {
			continue
		}
		secret, err := inputs.Value(s.cell.Spec.Secret, s.secret, novav1.MetadataSecretKey)
		if err != nil {
			return inputs.Halt(novav1.NovaConductorReadyCondition, err)
		}
		s.config.MetadataSecret = string(secret)
	}
	return nil
}

// syncDatabase is the phase that updates the schema of the database.
func (s *scope) syncDatabase(ctx context.Context) error {
	if s.config.Connection == "" {
		return nil
	}
	job, err := s.databaseJob(ctx, condition.DBSyncReadyCondition, func(config nova.Config, snippets podified.Snippets) (*podified.Job, error) {
		return nova.CellDatabaseJob(databaseJobName(s.cell.Name), s.cell.DatabaseName()+" on "+s.cell.Spec.CellDatabaseHostname, config, snippets)
	})
	if err != nil {
		return err
	}
	if err := s.Pods.RunJob(ctx, s.cell, condition.DBSyncReadyCondition, s.cell.Status.Jobs, job); err != nil {
		return err
	}
	s.cell.Status.Conditions.MarkTrue(condition.DBSyncReadyCondition, "The schema of database %s is up to date", s.cell.DatabaseName())
	return nil
}

// databaseJob makes a Job on the databases of the cell that runs where its conductor does, with
// the customServiceConfig of that, which may say how to connect.
func (s *scope) databaseJob(ctx context.Context, t condition.Type, make func(nova.Config, podified.Snippets) (*podified.Job, error)) (*podified.Job, error) {
	template := s.cell.Spec.ConductorServiceTemplate
	snippets, err := podified.ReadSnippets(ctx, s.Inputs, identity.PodNova, s.cell.Namespace, "spec.conductorServiceTemplate.customServiceConfig", template.CustomServiceConfig, template.CustomServiceConfigSecrets)
	if err != nil {
		return nil, err
	}
	config := s.config
	config.MetadataSecret = ""
	job, err := make(config, snippets)
	if err != nil {
		return nil, phase.Stalled(t, novav1.InvalidConfigReason, "%v: check the Secrets of the cell", err)
	}
	job.Image, job.Resources, job.NetworkAttachments = s.image(), template.Resources, template.NetworkAttachments
	job.NodeSelector = podified.Selected(cmp.Or(template.NodeSelector, s.cell.Spec.NodeSelector))
	if s.cell.Status.Jobs == nil {
		s.cell.Status.Jobs = map[string]string{}
	}
	return job, nil
}

// deploy is the phase that runs the services.
func (s *scope) deploy(ctx context.Context) error {
	if s.config.Connection == "" {
		return nil
	}
	if err := s.awaitCertificate(); err != nil {
		return err
	}
	return nova.Deploy(ctx, s.Pods, s.cell, s.components(), s.config, rollout.Files(s.cell), s.Known.JudgeWritten)
}
