package openstackdataplanenode

import (
	"context"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// builtIn returns a default service: its playbook is in the collection, under
// the name of the service.
func builtIn(name string) (dataplanev1.OpenStackDataPlaneService, bool) {
	svc := dataplanev1.OpenStackDataPlaneService{}
	for _, known := range dataplanev1.DefaultServices {
		if known == name {
			svc.Name, svc.Spec.Playbook = name, "edpm.operators."+strings.ReplaceAll(name, "-", "_")
			return svc, true
		}
	}
	return svc, false
}

// lookUpServices is the phase that finds the services of the role. An object
// takes the place of a built-in service of the same name.
func (s *scope) lookUpServices(ctx context.Context) error {
	for _, name := range s.eff.Services {
		svc := dataplanev1.OpenStackDataPlaneService{}
		err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: name}, &svc)
		if apierrors.IsNotFound(err) {
			var known bool
			if svc, known = builtIn(name); !known {
				return phase.Failing(condition.InputReadyCondition, dataplanev1.ServiceMissingReason,
					"spec.services of role %s: OpenStackDataPlaneService %q does not exist: create it, or remove the name", s.role.Name, name)
			}
		} else if err != nil {
			return err
		}
		s.services = append(s.services, svc)
	}
	return nil
}

// buildTargets is the phase that says what the host is wanted to be.
func (s *scope) buildTargets(ctx context.Context) error {
	if _, err := edpm.MatchesLimit(s.eff.Deploy.AnsibleLimit, s.node.Name); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "spec.deployStrategy: %v", err)
	}
	base, err := s.baseTarget(ctx)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	for _, svc := range s.services {
		t := base
		t.Step = edpm.Step{Name: svc.Name, Playbook: svc.Spec.Playbook, PlaybookContents: svc.Spec.Play, TaskTimeoutSeconds: svc.Spec.TaskTimeoutSeconds}
		if svc.Spec.OpenStackAnsibleEERunnerImage != "" {
			t.Image, t.ImageChosen = svc.Spec.OpenStackAnsibleEERunnerImage, true
		}
		if t.Image == "" {
			return phase.Stalled(condition.InputReadyCondition, common.RunnerImageMissingReason, "%s",
				images.MissingRunner("spec.openStackAnsibleEERunnerImage of an OpenStackDataPlaneService "+svc.Name))
		}
		if t.Files, err = s.files(ctx, svc); err != nil {
			return inputs.Halt(condition.InputReadyCondition, err)
		}
		s.targets = append(s.targets, t)
	}
	return nil
}

var hostKeyPath = field.NewPath("metadata", "annotations").Key(common.HostKeyAnnotation)

// baseTarget is what all services of the node have in common.
func (s *scope) baseTarget(ctx context.Context) (edpm.Target, error) {
	key, err := s.Inputs.Secret(ctx, s.node.Namespace, s.eff.SSHKeySecret)
	if err != nil {
		return edpm.Target{}, err
	}
	mounted, err := s.mountDigests(ctx)
	if err != nil {
		return edpm.Target{}, err
	}
	environment, err := s.Inputs.EnvDigests(ctx, s.node.Namespace, s.eff.Env, ansibleeev1.DefaultEnvConfigMap)
	if err != nil {
		return edpm.Target{}, err
	}
	hostKey, wrong := validate.HostKey(hostKeyPath, s.node.Annotations[common.HostKeyAnnotation])
	if wrong != nil {
		return edpm.Target{}, phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "%v", wrong)
	}
	strategy, err := dataplane.Rollout(s.eff.Deploy)
	if err != nil {
		return edpm.Target{}, phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "spec.deployStrategy: %v", err)
	}
	return edpm.Target{
		Namespace: s.node.Namespace, Host: s.node.Name, OwnerKind: Kind, OwnerUID: s.node.UID, Role: s.role.Name, Strategy: strategy,
		Rerun: inherit.Annotation(s.node, s.role, common.RerunAnnotation), Tokens: inherit.RerunTokens(s.node, s.role), Replacement: dataplane.Replacement(s.node), Image: s.RunnerImage,
		SSHKeySecret: s.eff.SSHKeySecret, SSHKeyDigest: inputs.Digest(key), HostKey: hostKey,
		JumpHost: s.eff.JumpHost, JumpKeyDigest: s.jumpKey,
		NetworkAttachments: s.eff.NetworkAttachments, Topology: topology.NameOf(s.eff.TopologyRef), Env: s.eff.Env, ExtraMounts: s.eff.ExtraMounts, MountDigests: mounted,
		EnvDigests: environment, EmptySince: emptySince(s.node),
		Vars: s.vars,
	}, nil
}

// emptySince is since when no service has anything left on the host that a reboot would end, as
// far as they say; zero if one says that it has.
func emptySince(node *dataplanev1.OpenStackDataPlaneNode) time.Time {
	var since time.Time
	for _, service := range node.Status.Services {
		if at := service.EmptySince; at != nil && at.After(since) {
			since = at.Time
		}
	}
	return since
}

// files are the entries of the ConfigMaps and Secrets of a service, and for the
// one that configures the network the template of its configuration.
func (s *scope) files(ctx context.Context, svc dataplanev1.OpenStackDataPlaneService) (map[string][]byte, error) {
	files := map[string][]byte{}
	if s.eff.NetworkTemplate != "" && svc.Name == dataplanev1.DefaultServices[0] {
		files[networkFile] = []byte(s.eff.NetworkTemplate)
	}
	add := func(data map[string][]byte, err error) error {
		for k, v := range data {
			files[k] = v
		}
		return err
	}
	for _, name := range svc.Spec.ConfigMaps {
		if err := add(s.Inputs.ConfigMap(ctx, s.node.Namespace, name)); err != nil {
			return nil, err
		}
	}
	for _, name := range svc.Spec.Secrets {
		if err := add(s.Inputs.Secret(ctx, s.node.Namespace, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// mountDigests are digests of what the extra mounts mount.
func (s *scope) mountDigests(ctx context.Context) (map[string]string, error) {
	digests := map[string]string{}
	for _, ref := range mountRefs(s.eff.ExtraMounts) {
		read := s.Inputs.ConfigMap
		if ref.kind == "Secret" {
			read = s.Inputs.Secret
		}
		data, err := read(ctx, s.node.Namespace, ref.name)
		if err != nil {
			return nil, err
		}
		digests[ref.kind+"/"+ref.name] = inputs.Digest(data)
	}
	return digests, nil
}
