package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// compute is one that was deployed with an image, has pulled image 2 and is Ready; change can alter it.
func compute(name, image string, change ...func(*novav1.NovaExternalCompute)) novav1.NovaExternalCompute {
	c := novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.NovaComputeContainerImage = image
	c.Status.Images, c.Status.PulledImage = map[string]string{novav1.ComputeComponent: image}, "2"
	c.Status.Hash = map[string]string{novav1.NovaStep: "hash"}
	for _, t := range []condition.Type{condition.DeploymentReadyCondition, novav1.ComputeServiceReadyCondition, condition.ReadyCondition} {
		c.Status.Conditions.MarkTrue(t, "yes")
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func manages(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

const imageField = `{"f:spec":{"f:novaComputeContainerImage":{}}}`

func chosen(c *novav1.NovaExternalCompute) {
	c.ManagedFields = []metav1.ManagedFieldsEntry{manages("kubectl-edit", imageField)}
}

func ofTemplate(c *novav1.NovaExternalCompute) { c.Status.TemplateImage = "3" }

func halted(reason condition.Reason, severity condition.Severity) func(*novav1.NovaExternalCompute) {
	return func(c *novav1.NovaExternalCompute) {
		for _, t := range []condition.Type{condition.DeploymentReadyCondition, condition.ReadyCondition} {
			c.Status.Conditions.MarkFalse(t, reason, severity, "no")
		}
	}
}

var (
	running = halted(condition.Reason(edpm.Running), condition.SeverityInfo)
	failed  = halted(condition.Reason(edpm.Failed), condition.SeverityWarning)
)

func down(c *novav1.NovaExternalCompute) {
	for _, t := range []condition.Type{novav1.ComputeServiceReadyCondition, condition.ReadyCondition} {
		c.Status.Conditions.MarkFalse(t, novav1.ServiceDownReason, condition.SeverityWarning, "no")
	}
}

func disabled(c *novav1.NovaExternalCompute) {
	for _, t := range []condition.Type{novav1.ComputeServiceReadyCondition, condition.ReadyCondition} {
		c.Status.Conditions.MarkFalse(t, novav1.ServiceDisabledReason, condition.SeverityInfo, "no")
	}
}

func unpulled(c *novav1.NovaExternalCompute) { c.Status.PulledImage = "" }

func waitsForNode(c *novav1.NovaExternalCompute) {
	c.Status.Conditions.MarkUnknown(condition.DeploymentReadyCondition, condition.InitReason, "no")
}

func inRepair(c *novav1.NovaExternalCompute) {
	c.Status.ComputeService = &novav1.ComputeServiceStatus{Disabled: true, DisabledFor: "repair", DisabledReason: "repair"}
}

func paused(c *novav1.NovaExternalCompute) { c.Spec.Deploy = ptr.To(false) }

func leaving(c *novav1.NovaExternalCompute) { c.DeletionTimestamp = ptr.To(metav1.Now()) }

func fresh(c *novav1.NovaExternalCompute) { c.Status.Hash = nil; running(c) }

func TestAChangeOfTheImageBeginsAnUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		before, image string
		want          *novav1.ComputeUpdate
	}{
		"none recorded before": {"", "2", nil},
		"the same":             {"2", "2", nil},
		"another":              {"1", "2", &novav1.ComputeUpdate{Image: "2"}},
	} {
		cell := &novav1.NovaCell{}
		cell.Status.Images = map[string]string{novav1.ComputeComponent: c.image}
		Begin(cell, c.before)
		if diff := cmp.Diff(c.want, cell.Status.ComputeUpdate); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestComputesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		compute novav1.NovaExternalCompute
		want    novav1.ComputesStatus
	}{
		"current":                                             {compute("c", "2"), novav1.ComputesStatus{Current: 1}},
		"current with an image that was chosen":               {compute("c", "2", chosen), novav1.ComputesStatus{Current: 1}},
		"with an old image":                                   {compute("c", "1"), novav1.ComputesStatus{Outdated: 1}},
		"with an old image that was chosen":                   {compute("c", "1", chosen), novav1.ComputesStatus{Pinned: 1, PinnedNames: []string{"c"}}},
		"with an old image, and a choice that was taken back": {compute("c", "1", chosen, func(c *novav1.NovaExternalCompute) { c.Spec.NovaComputeContainerImage = "" }), novav1.ComputesStatus{Outdated: 1}},
		"with an image that a template names":                 {compute("c", "1", ofTemplate), novav1.ComputesStatus{Pinned: 1, PinnedNames: []string{"c"}}},
		"about to get the image":                              {compute("c", "2", running), novav1.ComputesStatus{Outdated: 1, Busy: 1}},
		"failed with the image":                               {compute("c", "2", failed), novav1.ComputesStatus{Outdated: 1, Failed: 1}},
		"held":                                                {compute("c", "2", halted(condition.Reason(edpm.RolloutHeld), condition.SeverityInfo)), novav1.ComputesStatus{Outdated: 1}},
		"down":                                                {compute("c", "2", down), novav1.ComputesStatus{Current: 1}},
		"deployed for the first time":                         {compute("c", "2", fresh), novav1.ComputesStatus{Busy: 1}},
		"about to be deleted":                                 {compute("c", "1", leaving), novav1.ComputesStatus{}},
		"whose spec has changed, and its status not":          {compute("c", "2", func(c *novav1.NovaExternalCompute) { c.Generation = 1 }), novav1.ComputesStatus{Outdated: 1}},
	} {
		c.want.Total = 1
		if diff := cmp.Diff(&c.want, count("2", []novav1.NovaExternalCompute{c.compute})); diff != "" {
			t.Errorf("a compute that is %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOneComputeGetsANewImageFirst(t *testing.T) {
	begun, verified := novav1.ComputeUpdate{Image: "2"}, novav1.ComputeUpdate{Image: "2", Verified: true}
	first := func(name string) novav1.ComputeUpdate { return novav1.ComputeUpdate{Image: "2", First: name} }
	type computes = []novav1.NovaExternalCompute
	for name, c := range map[string]struct {
		before   novav1.ComputeUpdate
		computes computes
		want     novav1.ComputeUpdate
	}{
		"the first that is Ready":                 {begun, computes{compute("a", "1", failed), compute("c", "1"), compute("b", "1"), compute("d", "1", chosen)}, first("b")},
		"one that is deployed rather than failed": {begun, computes{compute("a", "1", failed), compute("b", "1", down)}, first("b")},
		"a failed one if all have failed":         {begun, computes{compute("a", "1", failed), compute("b", "1", failed)}, first("a")},
		"none that is paused":                     {begun, computes{compute("a", "1", paused), compute("b", "1", failed)}, first("b")},
		"none if all have it":                     {begun, computes{compute("a", "2", running), compute("b", "1", chosen), compute("d", "1", ofTemplate), compute("c", "1", leaving)}, verified},
		"none if there are none":                  {begun, nil, verified},
		"none while a host has not noticed":       {begun, computes{compute("a", "1"), compute("b", "1", unpulled)}, begun},
		"none while a host pulls the image":       {begun, computes{compute("a", "1"), compute("b", "1", unpulled, running)}, begun},
		"none while a host waits to pull it":      {begun, computes{compute("a", "1"), compute("b", "1", unpulled, halted(condition.Reason(edpm.RolloutHeld), condition.SeverityInfo))}, begun},
		"none if no host could pull it":           {begun, computes{compute("a", "1", unpulled, failed), compute("b", "1", unpulled, failed)}, begun},
		"one that could pull it":                  {begun, computes{compute("a", "1", unpulled, failed), compute("b", "1")}, first("b")},
		"one although nothing is run on another":  {begun, computes{compute("a", "1", unpulled, waitsForNode), compute("b", "1")}, first("b")},
		"one although another is in repair":       {begun, computes{compute("a", "1", unpulled, inRepair), compute("b", "1")}, first("b")},
		"one that is deployed for the first time": {begun, computes{compute("a", "1", unpulled, fresh)}, first("a")},
		"it stays while it runs":                  {first("b"), computes{compute("a", "1"), compute("b", "2", running)}, first("b")},
		"it stays when it fails":                  {first("b"), computes{compute("a", "1"), compute("b", "2", failed)}, first("b")},
		"it stays while it is down":               {first("b"), computes{compute("a", "1"), compute("b", "2", down)}, first("b")},
		"it is up with it":                        {first("b"), computes{compute("a", "1"), compute("b", "2")}, verified},
		"it is up with it, and disabled":          {first("b"), computes{compute("a", "1"), compute("b", "2", disabled)}, verified},
		"another one when it is deleted":          {first("b"), computes{compute("a", "1"), compute("b", "2", leaving)}, first("a")},
		"another one when it no longer exists":    {first("b"), computes{compute("a", "1")}, first("a")},
		"another one when it gets another image":  {first("b"), computes{compute("a", "1"), compute("b", "3", chosen)}, first("a")},
		"another one when it is in repair":        {first("b"), computes{compute("a", "1"), compute("b", "2", down, inRepair)}, first("a")},
		"one that is not in repair":               {begun, computes{compute("a", "1", failed), compute("b", "1", inRepair)}, first("a")},
		"none if all are in repair":               {first("b"), computes{compute("a", "1", inRepair), compute("b", "1", down, inRepair)}, begun},
		"none more when it is verified":           {verified, computes{compute("a", "1"), compute("b", "2", failed)}, verified},
	} {
		got := c.before
		advance(&got, "2", c.computes)
		if got != c.want {
			t.Errorf("%s: the update is %+v, want %+v", name, got, c.want)
		}
	}
}

func TestComputesThatAnUpdateLeftBehindAreNotWaitedFor(t *testing.T) {
	cell := &novav1.NovaCell{}
	cell.Status.Images = map[string]string{novav1.ComputeComponent: "2"}
	cell.Status.Computes = &novav1.ComputesStatus{Total: 1, Outdated: 1}
	for _, c := range []struct {
		update *novav1.ComputeUpdate
		image  string
		want   bool
	}{
		{nil, "2", false},
		{&novav1.ComputeUpdate{Image: "2"}, "2", true},
		{&novav1.ComputeUpdate{Image: "2"}, "3", true},
		{nil, "3", true},
	} {
		cell.Status.ComputeUpdate = c.update
		if got := isOutdated(cell, c.image); got != c.want {
			t.Errorf("with update %+v to %s computes are outdated: %t, want %t", c.update, c.image, got, c.want)
		}
	}
	cell.Status.Computes.Outdated, cell.Status.ComputeUpdate = 0, &novav1.ComputeUpdate{Image: "2"}
	if isOutdated(cell, "2") {
		t.Error("all computes have the image, and it is waited for them")
	}
	cell.Generation = 1
	if !isOutdated(cell, "2") {
		t.Error("the cell has not looked at its spec, and it is not waited for it")
	}
}

func TestServicesOfACellRestartOnceAllComputesHaveFollowed(t *testing.T) {
	update := &novav1.ComputeUpdate{Image: "2", Verified: true}
	sum := func(update *novav1.ComputeUpdate, computes ...novav1.NovaExternalCompute) *novav1.NovaCell {
		cell := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: "cell1"}}
		cell.Status.Images, cell.Status.ComputeUpdate = map[string]string{novav1.ComputeComponent: "2"}, update
		Sum(cell, computes, nil)
		return cell
	}
	for name, c := range map[string]struct {
		cell *novav1.NovaCell
		want string
	}{
		"all have followed":            {sum(update, compute("a", "2"), compute("b", "2", failed, leaving)), "2"},
		"one has not":                  {sum(update, compute("a", "2"), compute("b", "2", running)), ""},
		"the first has not":            {sum(&novav1.ComputeUpdate{Image: "2", First: "a"}, compute("a", "2", running)), ""},
		"one keeps an earlier one":     {sum(update, compute("a", "2"), compute("b", "1", chosen)), ""},
		"there has been no update":     {sum(nil, compute("a", "2")), ""},
		"the update is to another one": {sum(&novav1.ComputeUpdate{Image: "1", Verified: true}, compute("a", "2")), ""},
	} {
		if got := string(Files(c.cell)[releaseFile]); got != c.want {
			t.Errorf("%s: services know the release %q, want %q", name, got, c.want)
		}
	}
	cell := sum(update, compute("a", "2"))
	release := Release([]*novav1.NovaCell{cell, sum(nil)})
	if release == "" || release == Release([]*novav1.NovaCell{sum(update, compute("a", "2")), cell}) || Release([]*novav1.NovaCell{sum(nil)}) != "" {
		t.Errorf("the release of the cells is %q, want one that differs with their images", release)
	}
	cell.OwnerReferences = []metav1.OwnerReference{{Kind: "Nova", Controller: ptr.To(true)}}
	if files := Files(cell); len(files) > 0 {
		t.Errorf("services know %v before their Nova says that all computes have followed", files)
	}
	cell.Annotations = map[string]string{novav1.ComputesReleaseAnnotation: release, novav1.CellMappingsAnnotation: "m"}
	if got := string(Files(cell)[releaseFile]); got != release {
		t.Errorf("services know the release %q, want that of their Nova, %q", got, release)
	}
	if Files(cell)[mappingsFile] != nil {
		t.Error("services that reach no other cell know how the others are mapped")
	}
	cell.Spec.APIDatabaseHostname = "api"
	if got := string(Files(cell)[mappingsFile]); got != "m" {
		t.Errorf("services that reach other cells know the mappings %q", got)
	}
}
