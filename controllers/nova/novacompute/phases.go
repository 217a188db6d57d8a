package novacompute

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"text/template"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles/content"
	"github.com/edpm-operators/edpm-operators/internal/nova/layers"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

const (
	configDir = "/etc/nova/nova.conf.d"
	// user of nova in the images of the OpenStack operators.
	user = 42436
)

//go:embed templates/driver.conf
var driverConf string

// driverTemplate is what a driver adds to the configuration of the computes of a
// cell. It comes after that and wins.
var driverTemplate = template.Must(template.New("driver.conf").Funcs(template.FuncMap{"oslo": oslo.Quote}).Parse(driverConf))

// ref is the Topology that the pods follow.
func (s *scope) ref() *topologyv1.TopologyRef {
	if s.cell == nil {
		return topology.Nearest(s.compute.Spec.TopologyRef)
	}
	return topology.Nearest(s.compute.Spec.TopologyRef, s.cell.Spec.TopologyRef)
}

// lookUpCell is the phase that finds the cell.
func (s *scope) lookUpCell(ctx context.Context) error {
	cell := &novav1.NovaCell{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.compute.Namespace, Name: s.compute.Spec.CellName}, cell)
	if err == nil {
		s.cell = cell
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// chooseImages is the phase that chooses the image. A new compute has that of its cell: the
// operators may bring a newer one, which a conductor does not know. When the cell gets another
// one, it follows in its turn.
func (s *scope) chooseImages(ctx context.Context) error {
	compute := podified.Component{Spec: s.compute.Spec.ContainerImage, Default: s.Images.NovaCompute, Sets: []string{s.compute.Name}}
	if s.cell != nil {
		compute.Spec = cmp.Or(compute.Spec, rollout.PodImage(s.cell, s.compute))
		compute.Default = cmp.Or(s.cell.Status.Images[novav1.ComputeComponent], compute.Default)
		if s.cell.Status.ComputeUpdate != nil { // no one has to accept it
			compute.Default = cmp.Or(s.compute.Status.Images[novav1.ComputeComponent], compute.Default)
		}
	}
	return podified.ChooseImages(ctx, s.Client, s.compute, map[string]podified.Component{novav1.ComputeComponent: compute})
}

// cellReady is the phase that waits for the configuration that the cell makes.
func (s *scope) cellReady(ctx context.Context) error {
	name, t := s.compute.Spec.CellName, novav1.NovaCellReadyCondition
	switch {
	case s.cell == nil:
		return phase.Failing(t, novav1.CellMissingReason,
			"NovaCell %q does not exist in namespace %s: create it, for example through a Nova", name, s.compute.Namespace)
	case s.cell.ShortName() == novav1.Cell0Name:
		return phase.Stalled(t, novav1.CellZeroReason, "NovaCell %q is cell0, which has no computes: create a NovaCompute in another cell", name)
	case !s.cell.ConfiguresComputes():
		return phase.Waiting(t, novav1.CellNotReadyReason, "Waiting until NovaCell %s provides the configuration of its computes: see its conditions", name)
	}
	var err error
	s.generated, err = s.Inputs.SecretKey(ctx, s.compute.Namespace, s.cell.Status.ComputeConfigSecretName, novav1.GeneratedConfigKey)
	if missing := (*inputs.MissingError)(nil); errors.As(err, &missing) {
		return phase.Waiting(t, novav1.CellNotReadyReason, "Waiting for the configuration of NovaCell %s: %v", name, missing)
	}
	if err != nil {
		return inputs.Halt(t, err)
	}
	s.compute.Status.Conditions.MarkTrue(t, "NovaCell %s provides the configuration of its computes", name)
	return nil
}

// serviceConfig is the phase that makes the configuration.
func (s *scope) serviceConfig(ctx context.Context) error {
	snippets, err := podified.ReadSnippets(ctx, s.Inputs, identity.PodCompute, s.compute.Namespace, "spec.customServiceConfig", s.compute.Spec.CustomServiceConfig, s.compute.Spec.CustomServiceConfigSecrets)
	if err != nil {
		return err
	}
	texts := podified.Texts{Image: s.compute.Status.Images[novav1.ComputeComponent], Parts: snippets.Parts}
	if err := s.Options.JudgeWritten(ctx, s.compute, []podified.Texts{texts}); err != nil {
		return err
	}
	authorities, err := s.authorities(ctx)
	if err != nil {
		return inputs.Halt(condition.ServiceConfigReadyCondition, err)
	}
	text := bytes.NewBuffer(bytes.Clone(s.generated))
	if err := driverTemplate.Execute(text, map[string]any{
		"Driver": s.driver(), "Ironic": novav1.IronicDriver, "Keystone": s.cell.Spec.Keystone,
		"HasAuthorities": len(authorities) > 0, "Bundle": configDir + "/" + podified.AuthoritiesFile,
	}); err != nil {
		return phase.Stalled(condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "spec.keystone of NovaCell %s: %v", s.cell.Name, err)
	}
	if s.further, err = content.Read(ctx, s.Inputs, furtherfiles.Compute, s.compute.Namespace, "spec", s.compute.Spec.FurtherFiles); err != nil {
		return err
	}
	s.files = snippets.Files("nova", text.String())
	if len(authorities) > 0 {
		s.files[podified.AuthoritiesFile] = authorities
	}
	return nil
}

// authorities are those of the bundle of the cell, none if it has no bundle.
func (s *scope) authorities(ctx context.Context) ([]byte, error) {
	if s.cell.Spec.CABundleSecretName == "" {
		return nil, nil
	}
	return s.Inputs.SecretKey(ctx, s.cell.Namespace, s.cell.Spec.CABundleSecretName, podified.AuthoritiesFile)
}

func (s *scope) driver() string { return cmp.Or(s.compute.Spec.ComputeDriver, novav1.IronicDriver) }

// deploy is the phase that runs the pods.
func (s *scope) deploy(ctx context.Context) error {
	service := s.service()
	if err := s.Pods.Deploy(ctx, s.compute, service); err != nil {
		return err
	}
	if status := &s.compute.Status; status.UpdatedCount >= service.Replicas && status.Conditions.IsTrue(condition.DeploymentReadyCondition) {
		status.ConfigHash = layers.PodHash(s.generated, s.files[podified.AuthoritiesFile])
	}
	return nil
}

// service is what is special to nova-compute. The name of a pod is the name of
// its host in nova.
func (s *scope) service() *podified.Service {
	spec := s.compute.Spec
	service := &podified.Service{
		Name:     s.compute.Name,
		Status:   &s.compute.Status.Status,
		Labels:   map[string]string{"cell": s.cell.ShortName()},
		Replicas: s.services.Keep(), TopologyRef: s.ref(),
		NodeSelector:       podified.Selected(cmp.Or(spec.NodeSelector, s.cell.Spec.NodeSelector)),
		NetworkAttachments: spec.NetworkAttachments, User: user, Config: s.files, ConfigDir: configDir,
		Pod: nova.Pod("nova-compute", s.compute.Status.Images[novav1.ComputeComponent], spec.Resources, nova.GeneratedTransportURL(string(s.generated))),
	}
	content.AddTo(service, s.further)
	return service
}
