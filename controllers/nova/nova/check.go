package nova

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

func checkJobName(nova string) string { return nova + "-upgrade-check" }

// forgetRefused takes images that have not passed the check, and so have changed nothing, for not
// chosen: they are taken back when nothing asks for them any more.
func (s *scope) forgetRefused() {
	if s.nova.Status.Deployed != nil && !s.checked() {
		s.nova.Status.Images = maps.Clone(s.target())
	}
}

// target has the images to which an update goes: those that were checked last.
func (s *scope) target() map[string]string {
	switch status := &s.nova.Status; {
	case status.Deployed == nil:
		return status.Images
	case status.UpgradeCheck == nil:
		return status.Deployed
	default:
		return status.UpgradeCheck.Images
	}
}

// checked reports whether the chosen images have passed the check.
func (s *scope) checked() bool {
	check := s.nova.Status.UpgradeCheck
	return check != nil && maps.Equal(check.Images, s.nova.Status.Images)
}

// checkUpdate is the phase that keeps an update from changing anything until its images are
// known to work. It does not halt for what is wrong: what is deployed is looked after meanwhile. That
// they work is recorded before anything is changed, or a manager that dies would not know it.
func (s *scope) checkUpdate(ctx context.Context) error {
	status := &s.nova.Status
	if status.Deployed == nil {
		s.Services.Unwatch(client.ObjectKeyFromObject(s.nova))
		status.UpgradeCheck = nil
		return nil
	}
	if !s.checked() {
		warnings, err := s.check(ctx)
		var halt *phase.Halt
		switch {
		case errors.As(err, &halt):
			status.Conditions.MarkFalse(novav1.UpgradeCheckReadyCondition, halt.Reason, halt.Severity, "%s", halt.Message)
			return nil
		case err != nil:
			return err
		}
		status.UpgradeCheck = &novav1.UpgradeCheck{Images: maps.Clone(status.Images), Warnings: warnings}
		s.showChecked()
		begins := phase.Waiting(novav1.UpdateReadyCondition, novav1.UpdatingReason, "The new images can be used: the update begins")
		begins.After = again
		return begins
	}
	s.showChecked()
	return nil
}

func (s *scope) showChecked() {
	s.Services.Unwatch(client.ObjectKeyFromObject(s.nova))
	status := &s.nova.Status
	status.Conditions.MarkTrue(novav1.UpgradeCheckReadyCondition, "The new images can be used. Warnings: %s", cmp.Or(status.UpgradeCheck.Warnings, "none"))
}

// check returns the warnings of a check that has passed, and a *phase.Halt for one that has
// not. Without an API there is no database to check: the cells do so themselves.
func (s *scope) check(ctx context.Context) (warnings string, err error) {
	if !s.configured() {
		return "no API is run, so only the schemas of the cells are checked, when they are updated", nil
	}
	if err := s.checkData(ctx); err != nil {
		return "", err
	}
	hosts, err := s.hosts(ctx)
	if err != nil {
		return "", err
	}
	warning, err := s.checkComputes(hosts)
	if err != nil {
		return "", err
	}
	snippets, err := s.apiSnippets(ctx)
	if err != nil {
		return "", err
	}
	job, err := nova.UpgradeCheckJob(checkJobName(s.nova.Name), s.apiImage(), s.deployedServices(hosts), s.config, snippets)
	if err != nil {
		return "", invalid(novav1.UpgradeCheckReadyCondition, err)
	}
	s.place(job)
	job.Image = s.firstImage()
	if s.nova.Status.Jobs == nil {
		s.nova.Status.Jobs = map[string]string{}
	}
	if err := s.Pods.RunJob(ctx, s.nova, novav1.UpgradeCheckReadyCondition, s.nova.Status.Jobs, job); err != nil {
		return "", err
	}
	delete(s.nova.Status.Jobs, job.Name) // another update to the same image is checked again
	return strings.Trim(warning+"; "+job.Left.Details, "; "), nil
}

// checkData returns a *phase.Halt while data does not have the format of the deployed release,
// which the next one may not read. An update in progress has been checked, and migrates it at
// its end.
func (s *scope) checkData(ctx context.Context) error {
	if s.nova.Status.UpgradeCheck != nil {
		return nil
	}
	w := s.migrateCells(ctx)
	if w.err != nil || w.halt == nil {
		return w.err
	}
	halt := phase.Failing(novav1.UpgradeCheckReadyCondition, novav1.DataNotMigratedReason,
		"Data of the release that is deployed is not migrated: %s. Nothing is updated until condition %s is True", strings.TrimSuffix(w.halt.Message, "."), novav1.OnlineMigrationsReadyCondition)
	halt.Severity = w.halt.Severity // one that is in progress is waited for
	return halt
}

// firstImage is the one that an update would begin with: that of the API, which updates
// the schema, else that of the first step.
func (s *scope) firstImage() string {
	api := part{component: novav1.APIComponent}
	parts := []part{api}
	for _, step := range s.steps() {
		parts = append(parts, step.parts...)
	}
	for _, p := range parts {
		if image := p.in(s.nova.Status.Images); image != p.in(s.nova.Status.Deployed) {
			return image
		}
	}
	return api.in(s.nova.Status.Images)
}

// mostHosts is how many hosts a message names.
const mostHosts = 5

// checkComputes returns a *phase.Halt that names computes which an update would leave behind,
// and a warning where nova cannot say. That keeps an update from nothing while no pod of the
// API is ready: it may be what repairs it. Of a Nova without computes nothing is asked.
func (s *scope) checkComputes(hosts map[string]host) (warning string, err error) {
	if len(hosts) == 0 {
		return "", nil
	}
	listing := s.Services.Watch(client.ObjectKeyFromObject(s.nova))
	t, running := novav1.UpgradeCheckReadyCondition, s.nova.Status.API != nil && s.nova.Status.API.ReadyCount > 0
	switch trouble := listing.Trouble; {
	case trouble != nil && running:
		return "", phase.Failing(t, trouble.Reason, "%s, so it is not known which computes are up. It is tried again automatically, and nothing is updated until then", trouble.Message)
	case trouble != nil:
		return "computes were not looked at, as no pod of the API is ready", nil //nolint:nilerr // the warning says so
	case !listing.Asked:
		return "", phase.Waiting(t, novav1.NotAskedReason, "Waiting until nova is asked for the services of computes")
	}
	down, left := leftBehind(listing.Services, hosts)
	switch {
	case len(down) > 0:
		return "", phase.Failing(t, novav1.ComputesDownReason,
			"nova-compute is down on %d hosts, which would stay on the old release: %s. Nothing is updated until they are up, disabled by annotation edpm.openstack.org/disable of their nodes, or deleted", len(down), names.List(down, mostHosts))
	case len(left) > 0:
		return "", phase.Failing(t, novav1.ServicesLeftReason,
			"nova has services nova-compute of %d hosts that no compute has, and that are down: %s. Nothing is updated until they are deleted: openstack compute service delete <id>", len(left), names.List(left, mostHosts))
	}
	return "", nil
}

// host is what is known here of a host in nova.
type host struct {
	// deleting reports whether its compute is being deleted.
	deleting bool
	// disabledFor is the reason with which the operators have disabled its service.
	disabledFor string
	// follows reports whether it runs the image that is recorded for its cell.
	follows bool
}

// deployedServices are those that are to run the release that is deployed; nil while an update is in
// progress, in which releases differ. A compute whose image was chosen for it is not among them, nor
// is one that another tool has deployed, or that is in repair.
func (s *scope) deployedServices(hosts map[string]host) *nova.DeployedServices {
	if s.nova.Status.UpgradeCheck != nil {
		return nil
	}
	conductor := part{novav1.ConductorComponent, novav1.Cell0Name, novav1.ConductorName(novav1.CellName(s.nova.Name, novav1.Cell0Name))}
	services := &nova.DeployedServices{Conductor: conductor.set, Computes: []string{}}
	for _, cell := range s.withDatabase() {
		if other := (part{component: conductor.component, cell: cell}); s.image(other) == s.image(conductor) {
			services.Cells = append(services.Cells, cell)
		}
	}
	for name, h := range hosts {
		if h.follows && !h.deleting && h.disabledFor == "" {
			services.Computes = append(services.Computes, name)
		}
	}
	slices.Sort(services.Computes)
	return services
}

// hosts are those of the computes of the Nova, by the names that they have in nova.
func (s *scope) hosts(ctx context.Context) (map[string]host, error) {
	hosts := map[string]host{}
	for _, cell := range s.cells {
		onHosts, inPods := &novav1.NovaExternalComputeList{}, &novav1.NovaComputeList{}
		ofCell := client.MatchingFields{"spec.cellName": cell.Name}
		if err := errors.Join(s.List(ctx, onHosts, client.InNamespace(cell.Namespace), ofCell), s.List(ctx, inPods, client.InNamespace(cell.Namespace), ofCell)); err != nil {
			return nil, fmt.Errorf("listing the computes of cell %s: %w", cell.Name, err)
		}
		for i := range onHosts.Items {
			name, h := hostOf(&onHosts.Items[i])
			h.follows = rollout.HasFollowed(cell, &onHosts.Items[i])
			hosts[name] = h
		}
		for i := range inPods.Items {
			compute := &inPods.Items[i]
			for n := range ptr.Deref(compute.Spec.Replicas, 1) {
				hosts[fmt.Sprintf("%s-%d", compute.Name, n)] = host{deleting: !compute.DeletionTimestamp.IsZero(), follows: rollout.PodsHaveFollowed(cell, compute)}
			}
		}
	}
	return hosts, nil
}

// hostOf is the host of a compute, by the name that is recorded once nova knows it.
func hostOf(compute *novav1.NovaExternalCompute) (string, host) {
	h, name := host{deleting: !compute.DeletionTimestamp.IsZero()}, compute.Status.NovaHost
	if service := compute.Status.ComputeService; service != nil {
		name, h.disabledFor = cmp.Or(name, service.Host), service.DisabledFor
	}
	return cmp.Or(name, compute.Name), h
}

// leftBehind returns the hosts that are down, of computes and of no compute, sorted. One that
// is being deleted, or was disabled by the annotation of its node, may be down.
func leftBehind(services []computeservice.Service, hosts map[string]host) (down, left []string) {
	for _, s := range services {
		h, known := hosts[s.Host]
		switch {
		case s.Up, h.deleting, s.Disabled && h.disabledFor != "" && s.DisabledReason == h.disabledFor:
		case known:
			down = append(down, s.Host)
		default:
			left = append(left, s.Host)
		}
	}
	slices.Sort(down)
	slices.Sort(left)
	return down, left
}
