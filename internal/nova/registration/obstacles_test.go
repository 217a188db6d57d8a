package registration

import (
	"strings"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// peer returns a compute of cell1 in which nova may put guests.
func peer(name string) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{}
	c.Namespace, c.Name, c.Spec.CellName = "openstack", name, "cell1"
	c.Status.ComputeService = &novav1.ComputeServiceStatus{Up: true}
	return c
}

func without(c *novav1.NovaExternalCompute, change func(*novav1.NovaExternalCompute)) *novav1.NovaExternalCompute {
	change(c)
	return c
}

func TestGuestsAreLiveMigratedOnlyOffHostsFromWhichThatCanSucceed(t *testing.T) {
	down := without(peer("c"), func(c *novav1.NovaExternalCompute) { c.Status.ComputeService.Up = false })
	disabled := without(peer("c"), func(c *novav1.NovaExternalCompute) { c.Status.ComputeService.Disabled = true })
	elsewhere := without(peer("c"), func(c *novav1.NovaExternalCompute) { c.Spec.CellName = "cell2" })
	unknown := without(peer("c"), func(c *novav1.NovaExternalCompute) { c.Status.ComputeService = nil })
	unreachable := []string{"b (no answer)"}
	shows := func(reason condition.Reason) *condition.Condition {
		return condition.FalseCondition(novav1.LiveMigrationReadyCondition, reason, condition.SeverityWarning, "why it is not")
	}
	const possible, notYet, said = "", "it is not configured yet", "why it is not"
	for title, c := range map[string]struct {
		mode        string
		configured  bool
		shown       *condition.Condition
		unreachable []string
		others      []*novav1.NovaExternalCompute
		want        string
	}{
		"all is well":                                          {validate.DrainLive, true, condition.TrueCondition(novav1.LiveMigrationReadyCondition, "ready"), nil, []*novav1.NovaExternalCompute{peer("b")}, possible},
		"it was never configured":                              {validate.DrainLive, false, shows(novav1.MigrationNotConfiguredReason), nil, nil, said},
		"it was never configured, which is not shown":          {validate.DrainLive, false, nil, nil, nil, notYet},
		"it was never configured, and guests are moved cold":   {validate.DrainCold, false, shows(novav1.MigrationNotConfiguredReason), nil, nil, possible},
		"the last reconciliation did not look":                 {validate.DrainLive, true, condition.UnknownCondition(novav1.LiveMigrationReadyCondition, condition.InitReason, "waiting"), nil, nil, possible},
		"its certificate cannot be renewed":                    {validate.DrainLive, true, shows(novav1.MigrationCANotReadyReason), nil, nil, possible},
		"the only other host is not reached":                   {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b")}, said},
		"one of two others is not reached":                     {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b"), peer("c")}, possible},
		"the one that is reached is down":                      {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b"), down}, said},
		"the one that is reached is disabled":                  {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b"), disabled}, said},
		"the one that is reached is in another cell":           {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b"), elsewhere}, said},
		"nova does not know the one that is reached":           {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{peer("b"), unknown}, said},
		"nova may put guests on no other host, and says so":    {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), unreachable, []*novav1.NovaExternalCompute{disabled}, possible},
		"what is not reached has no name, and can be any host": {validate.DrainLive, true, shows(novav1.PeerUnreachableReason), []string{"2 more"}, []*novav1.NovaExternalCompute{peer("b")}, possible},
	} {
		own := peer("a")
		own.Status.LiveMigration = &novav1.LiveMigrationStatus{UnreachablePeers: c.unreachable}
		if c.configured {
			own.Status.LiveMigration.Address, own.Status.Hash = "192.0.2.1", map[string]string{"live-migration": "1"}
		}
		objects := []client.Object{own}
		for _, other := range c.others {
			objects = append(objects, other.DeepCopy())
		}
		s := &Registration{compute: own, previousLive: c.shown, service: service{reader: readerOf(t, objects...)}}
		found, err := s.obstacles(t.Context(), c.mode)
		if got := found[drain.LiveMigrate]; err != nil || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: it says %q (%v), want %q", title, got, err, c.want)
		}
	}
}

// copying returns a compute of cell1 from and to which disks of guests are copied.
func copying(name string) *novav1.NovaExternalCompute {
	c := peer(name)
	c.Spec.DataplaneNodeName = "node-" + name
	c.Status.LiveMigration = &novav1.LiveMigrationStatus{Address: "192.0.2.1"}
	c.Status.ColdMigration = &novav1.ColdMigrationStatus{HostKey: "ssh-ed25519 A", KeyFingerprint: "SHA256:a"}
	c.Status.Hash = map[string]string{"live-migration": "1"}
	return c
}

func TestGuestsAreMigratedColdOnlyBetweenHostsThatCopyDisks(t *testing.T) {
	type computes = []*novav1.NovaExternalCompute
	earlier := func(name string) *novav1.NovaExternalCompute {
		return without(copying(name), func(c *novav1.NovaExternalCompute) { c.Status.ColdMigration = nil })
	}
	unknown := func(name string) *novav1.NovaExternalCompute {
		return without(copying(name), func(c *novav1.NovaExternalCompute) { c.Status.ColdMigration.HostKey = "" })
	}
	keyless := without(copying("a"), func(c *novav1.NovaExternalCompute) { c.Status.ColdMigration.KeyFingerprint = "" })
	unaddressed := without(copying("a"), func(c *novav1.NovaExternalCompute) { c.Status.LiveMigration.Address = "" })
	notRun := without(copying("a"), func(c *novav1.NovaExternalCompute) { c.Status.Hash = nil })
	another := without(copying("b"), func(c *novav1.NovaExternalCompute) { c.Status.ColdMigration.KeyFingerprint = "SHA256:b" })
	down := without(copying("c"), func(c *novav1.NovaExternalCompute) { c.Status.ComputeService.Up = false })
	disabled := without(copying("c"), func(c *novav1.NovaExternalCompute) { c.Status.ComputeService.Disabled = true })
	elsewhere := without(copying("c"), func(c *novav1.NovaExternalCompute) { c.Spec.CellName = "cell2" })
	const (
		possible = ""
		noKey    = "step live-migration has not given the host the key of its cell. See conditions MigrationKeyReady of NovaCell cell1 and LiveMigrationReady of NovaExternalCompute a."
		noneOf   = "of the 1 hosts that nova may choose none takes disks. Host b: "
	)
	for title, c := range map[string]struct {
		mode   string
		own    *novav1.NovaExternalCompute
		others computes
		want   string
	}{
		"all is well":                        {validate.DrainCold, copying("a"), computes{copying("b")}, possible},
		"the keys change":                    {validate.DrainCold, copying("a"), computes{another}, possible},
		"an earlier version has deployed it": {validate.DrainCold, earlier("a"), computes{copying("b")}, "is not possible: an earlier version of the operators has deployed the host. kubectl edpm rerun node-a configures it."},
		"an earlier version has deployed it, and it is live":  {validate.DrainLive, earlier("a"), computes{copying("b")}, "kubectl edpm rerun node-a"},
		"its key is not known":                                {validate.DrainCold, unknown("a"), computes{copying("b")}, "the key of the host is not known. Set annotation edpm.openstack.org/host-key on OpenStackDataPlaneNode node-a."},
		"it has no key of its cell":                           {validate.DrainCold, keyless, computes{copying("b")}, noKey},
		"it has no address":                                   {validate.DrainCold, unaddressed, computes{copying("b")}, noKey},
		"its step has never run":                              {validate.DrainCold, notRun, computes{copying("b")}, noKey},
		"the only other host is not configured":               {validate.DrainCold, copying("a"), computes{earlier("b")}, noneOf + "an earlier version of the operators has deployed the host. kubectl edpm rerun node-b configures it."},
		"no other host is configured, of which one is named":  {validate.DrainCold, copying("a"), computes{unknown("c"), earlier("b")}, "of the 2 hosts that nova may choose none takes disks. Host b: an earlier"},
		"one of two others is not configured":                 {validate.DrainCold, copying("a"), computes{earlier("b"), copying("c")}, possible},
		"the one that is configured is down":                  {validate.DrainCold, copying("a"), computes{unknown("b"), down}, noneOf + "the key of the host is not known"},
		"the one that is configured is disabled":              {validate.DrainCold, copying("a"), computes{unknown("b"), disabled}, noneOf},
		"the one that is configured is in another cell":       {validate.DrainCold, copying("a"), computes{unknown("b"), elsewhere}, noneOf},
		"nova may put guests on no other host, and says so":   {validate.DrainCold, copying("a"), computes{disabled}, possible},
		"guests are shut down, and stay":                      {validate.DrainStop, earlier("a"), nil, possible},
		"the drain has ended, and what it began is completed": {"", earlier("a"), nil, possible},
		"the host is off":                                     {drain.Evacuation, earlier("a"), nil, possible},
	} {
		objects := []client.Object{c.own.DeepCopy()}
		for _, other := range c.others {
			objects = append(objects, other.DeepCopy())
		}
		s := &Registration{compute: c.own, service: service{reader: readerOf(t, objects...)}}
		found, err := s.obstacles(t.Context(), c.mode)
		if got := found[drain.Migrate]; err != nil || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: it says %q (%v), want %q", title, got, err, c.want)
		}
	}
}

func readerOf(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := novav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}
