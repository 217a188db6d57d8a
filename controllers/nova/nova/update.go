package nova

import (
	"context"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// again is when an update is looked at again that has reached its next step.
const again = 10 * time.Millisecond

// step of an update. The next one begins when all of its parts run their new image.
type step struct {
	name  string
	parts []part
}

// steps are the order in which services are updated once the API database has its new schema:
// https://docs.openstack.org/nova/latest/admin/upgrades.html#rolling-upgrade-process. The
// schema of a cell is updated by its NovaCell, before its conductor.
func (s *scope) steps() []step {
	var steps []step
	for _, o := range novav1.UpdateOrder {
		next := step{name: o.Name}
		for _, component := range o.Components {
			next.parts = append(next.parts, s.parts(component)...)
		}
		steps = append(steps, next)
	}
	return steps
}

// parts are those that run a component.
func (s *scope) parts(component string) []part {
	switch component {
	case novav1.SchedulerComponent:
		return []part{{component: component, set: novav1.SchedulerName(s.nova.Name)}}
	case novav1.APIComponent:
		return []part{{component: component, set: novav1.APIName(s.nova.Name)}}
	}
	return s.cellParts(component, setOfCell[component])
}

// setOfCell names the StatefulSet of a component in a cell; of computes each cell has its own follow.
var setOfCell = map[string]func(cell string) string{
	novav1.ConductorComponent: novav1.ConductorName, novav1.MetadataComponent: novav1.MetadataName, novav1.NoVNCProxyComponent: novav1.NoVNCProxyName,
	novav1.ComputeComponent: func(string) string { return "" },
}

// beginUpdate records what is deployed when an image was replaced by another one. An update
// in progress continues to the images that were chosen last.
func (s *scope) beginUpdate(before map[string]string) {
	status := &s.nova.Status
	if status.Deployed != nil {
		before = status.Deployed
	}
	deployed, replaced := map[string]string{}, false
	for _, step := range s.steps() {
		for _, p := range step.parts {
			if present := p.in(before); present != "" {
				deployed[p.key()] = present
				replaced = replaced || present != p.in(status.Images)
			}
		}
	}
	switch {
	case replaced && status.Deployed == nil:
		status.Deployed = deployed
	case !replaced && status.UpgradeCheck == nil:
		status.Deployed = nil // none, or one that was taken back
	}
	if status.Deployed != nil {
		s.updating("the schema of the API database is updated")
	}
}

func (s *scope) updating(until string) {
	s.nova.Status.Conditions.MarkFalse(novav1.UpdateReadyCondition, novav1.UpdatingReason, condition.SeverityInfo,
		"Waiting until %s. What follows in the order of nova keeps its image until then", until)
}

// update is the phase that continues an update with its next step when the one before is
// complete. It comes after that of the schema of the API database.
func (s *scope) update(ctx context.Context) error {
	status := &s.nova.Status
	switch {
	case status.Deployed == nil:
		return nil
	case status.UpgradeCheck == nil:
		s.updating("the new images are checked: see condition " + string(novav1.UpgradeCheckReadyCondition))
		return nil
	}
	for _, step := range s.steps() {
		if s.reach(step) {
			halt := phase.Waiting(novav1.UpdateReadyCondition, novav1.UpdatingReason, "Updating %s", step.name)
			halt.After = again
			return halt
		}
		lagging, err := s.lagging(ctx, step)
		if err != nil {
			return err
		}
		if lagging != "" {
			s.updating(lagging)
			return nil
		}
	}
	if halt := s.restartOnce(); halt != nil {
		return halt
	}
	if cell := s.restarting(); cell != "" {
		s.updating("NovaCell " + cell + " has restarted its services, as all computes are updated: see its conditions")
		return nil
	}
	s.reached = true
	if s.configured() {
		s.updating("the data of all cells is migrated: see condition " + string(novav1.OnlineMigrationsReadyCondition))
	} else {
		s.finishUpdate()
	}
	return nil
}

// restartOnce has the services of the cells restart when all computes have another release:
// which they have is asked when a service starts ([upgrade_levels] compute = auto). API and scheduler restart
// once the cells are mapped again.
func (s *scope) restartOnce() *phase.Halt {
	release := rollout.Release(s.cells)
	if release == s.nova.Status.ComputesRelease {
		return nil
	}
	s.nova.Status.ComputesRelease = release
	halt := phase.Waiting(novav1.UpdateReadyCondition, novav1.UpdatingReason, "All computes are updated: restarting the services of the cells")
	halt.After = again
	return halt
}

// restarting is the first cell whose services have not been told the release of all computes; empty
// if all have. That their pods have restarted is for lagging to say.
func (s *scope) restarting() string {
	for _, cell := range s.cells {
		if rollout := cell.Status.ConfigRollout; rollout == nil || rollout.Inputs != s.inputsOf(cell) {
			return cell.Name
		}
	}
	return ""
}

// finishUpdate ends an update that is complete, unless other images were chosen since. It
// returns false if there is none to end.
func (s *scope) finishUpdate() bool {
	status := &s.nova.Status
	if status.Deployed == nil {
		return false
	}
	if !s.checked() {
		s.updating("the images that were chosen since are checked: see condition " + string(novav1.UpgradeCheckReadyCondition))
		return false
	}
	status.Deployed, status.UpgradeCheck = nil, nil
	status.Conditions.Remove(novav1.UpdateReadyCondition)
	status.Conditions.Remove(novav1.UpgradeCheckReadyCondition)
	return true
}

// reach gives the parts of a step their new images, and reports whether any had another one.
func (s *scope) reach(step step) bool {
	changed := false
	for _, p := range step.parts {
		if image := p.in(s.target()); image != "" && p.in(s.nova.Status.Deployed) != image {
			s.nova.Status.Deployed[p.key()], changed = image, true
		}
	}
	return changed
}

// lagging says which part of a step does not run its image yet, empty if all do.
func (s *scope) lagging(ctx context.Context, step step) (string, error) {
	for _, p := range step.parts {
		if p.component == novav1.ComputeComponent {
			if lagging := s.computesLagging(p); lagging != "" {
				return lagging, nil
			}
			continue
		}
		if p.set == "" {
			continue
		}
		lagging, err := podified.Lagging(ctx, s.Client, s.nova.Namespace, p.set, p.in(s.target()))
		if lagging != "" || err != nil {
			return lagging, err
		}
	}
	return "", nil
}

// computesLagging says which computes of a cell do not run its image yet, empty if all
// do that follow it.
func (s *scope) computesLagging(p part) string {
	for _, cell := range s.cells {
		if p.cell == "" || cell.ShortName() != p.cell {
			continue
		}
		if lagging := rollout.Lagging(cell, p.in(s.target())); lagging != "" {
			return lagging
		}
	}
	return ""
}
