package edpmservice

import (
	"context"
	"errors"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// scope is one service in one reconciliation.
type scope struct {
	*hosted.Scope
	service  *edpmv1.EDPMService
	class    *edpmv1.EDPMServiceClass
	files    map[string][]byte
	strategy edpm.Strategy
}

func bind(h *hosted.Scope) hosted.Parts {
	s := &scope{Scope: h, service: h.Object.(*edpmv1.EDPMService)}
	name := s.service.Spec.ClassName
	return hosted.Parts{
		Inputs:    []phase.Phase{phase.Of(edpmv1.ServiceClassReadyCondition, s.readClass), phase.Of(edpmv1.PrecedingServicesReadyCondition, s.preceding)},
		Steps:     []hosted.Step{{Step: edpm.Step{Name: name}, Complete: s.install}},
		Drain:     []phase.Func{s.knowCleanup},
		Cleanup:   hosted.Step{Step: edpm.Step{Name: edpmv1.CleanupStep(name), Removal: true}, Complete: s.remove},
		Leftovers: "what the playbook of EDPMServiceClass " + name + " put there",
	}
}

// readClass is the phase that reads the class, and checks it again: admission may have
// been off when it was written.
func (s *scope) readClass(ctx context.Context) (err error) {
	if s.class, err = find(ctx, s.Client, s.service.Namespace, s.service.Spec.ClassName); err != nil {
		return err
	}
	s.service.Status.ObservedClassGeneration = s.class.Generation
	if errs := edpmservice.ClassErrors(s.class); len(errs) > 0 {
		return s.invalid(errs.ToAggregate())
	}
	if s.files, err = edpmservice.Files(ctx, s.Inputs, s.class); err != nil {
		return inputs.Halt(edpmv1.ServiceClassReadyCondition, err)
	}
	if text := s.service.Spec.CustomServiceConfig; text != "" {
		s.files[edpmv1.OverrideFile(s.class.Name)] = []byte(text)
	}
	var section dataplanev1.DeployStrategySection
	if s.Role != nil {
		section = s.Role.Spec.DeployStrategy
	}
	if s.strategy, err = edpmservice.Rollout(s.class, inherit.MergeStrategy(s.Node.Spec.DeployStrategy, section)); err != nil {
		return s.invalid(err)
	}
	s.service.Status.Conditions.MarkTrue(edpmv1.ServiceClassReadyCondition, "EDPMServiceClass %s and its files are complete", s.class.Name)
	return nil
}

func (s *scope) invalid(err error) error {
	return phase.Stalled(edpmv1.ServiceClassReadyCondition, edpmv1.InvalidClassReason, "EDPMServiceClass %s: %v", s.class.Name, err)
}

// preceding is the phase that waits for the services that the class comes after.
func (s *scope) preceding(ctx context.Context) error {
	shown := map[string]bool{}
	for _, entry := range s.Node.Status.Services {
		shown[entry.Name] = entry.Ready
	}
	for _, name := range s.class.Spec.After {
		ready, has := shown[name]
		if ready {
			continue
		}
		if err := s.cycle(ctx); err != nil {
			return err
		}
		if !has {
			return phase.Waiting(edpmv1.PrecedingServicesReadyCondition, edpmv1.PrecedingMissingReason,
				"Waiting for service %s, which OpenStackDataPlaneNode %s does not have: give it to the node, or remove it from spec.after of EDPMServiceClass %s", name, s.Node.Name, s.class.Name)
		}
		return phase.Waiting(edpmv1.PrecedingServicesReadyCondition, edpmv1.PrecedingNotReadyReason,
			"Waiting for service %s of OpenStackDataPlaneNode %s to become Ready: see status.services of the node", name, s.Node.Name)
	}
	s.service.Status.Conditions.MarkTrue(edpmv1.PrecedingServicesReadyCondition, "All services in spec.after of EDPMServiceClass %s are Ready", s.class.Name)
	return nil
}

// cycle returns a *phase.Halt if the class waits for itself.
func (s *scope) cycle(ctx context.Context) error {
	path, err := CycleOf(ctx, s.Client, s.class)
	if err != nil || path == nil {
		return err
	}
	return phase.Stalled(edpmv1.PrecedingServicesReadyCondition, edpmv1.AfterCycleReason, "%s", CycleMessage(path))
}

// CycleOf returns the services by which a class comes after itself, nil if it does not.
func CycleOf(ctx context.Context, c client.Reader, class *edpmv1.EDPMServiceClass) ([]string, error) {
	classes := &edpmv1.EDPMServiceClassList{}
	if err := c.List(ctx, classes, client.InNamespace(class.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	after := map[string][]string{}
	for i := range classes.Items {
		after[classes.Items[i].Name] = classes.Items[i].Spec.After
	}
	return edpmservice.Cycle(after, class.Name), nil
}

// CycleMessage says which classes come after each other, and what to do.
func CycleMessage(path []string) string {
	return "spec.after of EDPMServiceClasses makes a cycle, so that none of them can start: " + strings.Join(path, " comes after ") + ". Remove one of these names from spec.after"
}

func (s *scope) install(t *edpm.Target) {
	t.Step.Playbook, t.Step.PlaybookContents, t.Step.TaskTimeoutSeconds = s.class.Spec.Playbook, s.class.Spec.Play, s.class.Spec.TaskTimeoutSeconds
	s.setVars(t)
	t.Files = s.files
	deploy := t.Strategy.Deploy && s.strategy.Deploy
	t.Strategy = s.strategy
	t.Strategy.Deploy = deploy
}

func (s *scope) remove(t *edpm.Target) {
	t.Step.Playbook, t.Step.PlaybookContents, t.Step.TaskTimeoutSeconds = s.class.Spec.CleanupPlaybook, s.class.Spec.CleanupPlay, s.class.Spec.TaskTimeoutSeconds
	s.setVars(t)
}

// setVars adds the variables of the class, which have been checked.
func (s *scope) setVars(t *edpm.Target) {
	if vars, err := edpmservice.Vars(s.class, t.Vars); err == nil {
		t.Vars = vars
	}
}

// knowCleanup is the phase of a deleted service that finds out how it is removed from
// the host.
func (s *scope) knowCleanup(ctx context.Context) error {
	if s.SkipCleanup() {
		return nil
	}
	if touched, err := s.Touched(ctx); err != nil || !touched {
		return err
	}
	var err error
	s.class, err = find(ctx, s.Client, s.service.Namespace, s.service.Spec.ClassName)
	var missing *phase.Halt
	if errors.As(err, &missing) {
		return phase.Stalled(condition.DeploymentReadyCondition, hostedv1.CleanupFailedReason,
			"Cannot clean up the host of OpenStackDataPlaneNode %s: EDPMServiceClass %q, which says how, does not exist. Create it again, or skip clean-up with annotation %s: \"true\"",
			s.service.Spec.DataplaneNodeName, s.service.Spec.ClassName, common.SkipCleanupAnnotation)
	}
	if err != nil {
		return err
	}
	if errs := edpmservice.ClassErrors(s.class); len(errs) > 0 {
		return phase.Stalled(condition.DeploymentReadyCondition, hostedv1.CleanupFailedReason,
			"Cannot clean up the host of OpenStackDataPlaneNode %s: EDPMServiceClass %s: %v. Correct the class, or skip clean-up with annotation %s: \"true\"",
			s.service.Spec.DataplaneNodeName, s.class.Name, errs.ToAggregate(), common.SkipCleanupAnnotation)
	}
	return nil
}
