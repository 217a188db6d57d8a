package migration

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Ready is the phase of the condition LiveMigrationReady, once the service is deployed.
func (m *Migration) Ready(context.Context) error {
	const ready = novav1.LiveMigrationReadyCondition
	if m.compute.Status.LiveMigration == nil {
		return phase.Waiting(ready, novav1.MigrationNotConfiguredReason,
			"Live migration is not configured: an earlier version of the operators has deployed the host. kubectl edpm rerun %s configures it, which restarts libvirt and nova-compute but no guest", m.compute.Spec.DataplaneNodeName)
	}
	if !m.address.IsValid() {
		return phase.Waiting(ready, novav1.MigrationAddressMissingReason,
			"Live migration is not configured: the host has no IP address %s", m.where())
	}
	m.noteAuthority()
	if m.problem != nil {
		return m.problem
	}
	if m.files == nil {
		return phase.Failing(ready, novav1.MigrationCANotReadyReason,
			"The certificate of the host cannot be renewed: see %s of NovaCell %s", m.signers(), m.compute.Spec.CellName)
	}
	if !m.isSettled {
		return phase.Waiting(ready, novav1.MigrationPeersChangeReason, "Computes join or leave NovaCell %s: until none of its computes is in a run, the host accepts only those that it had before", m.compute.Spec.CellName)
	}
	if m.keysChange {
		return phase.Waiting(ready, novav1.MigrationPeersChangeReason, "The key by which NovaCell %s copies disks changes: the host keeps the one that it has until condition %s there says that it can be used", m.compute.Spec.CellName, novav1.MigrationKeyReadyCondition)
	}
	state := m.State()
	if state.Phase != edpm.Converged {
		return edpm.Halt(ready, state)
	}
	if state.Run != "" {
		m.compute.Status.LiveMigration.UnreachablePeers = unreachable(state.Message)
	}
	m.noteKey()
	if names := m.unreachable(); len(names) > 0 {
		return phase.Failing(ready, novav1.PeerUnreachableReason,
			"The host does not reach libvirt over TLS on %s: see the conditions there, and make sure that no firewall between the hosts drops the ports; then rerun this compute", strings.Join(names, ", "))
	}
	if err := m.ends(); err != nil {
		return err
	}
	count, copying := m.peers.count()
	m.compute.Status.Conditions.MarkTrue(ready, "Guests can be moved within NovaCell %s, which has %d computes; this one is reached at %s%s%s%s%s", m.compute.Spec.CellName, count, m.address, m.notCopied(count, copying), m.inClear(), m.shared(), m.validUntil())
	return nil
}

func (m *Migration) where() string {
	if m.network == "" {
		return "in ansibleHost of its node: set that field to an IP address"
	}
	return "in network " + m.network + ": set fixedIP in networks of its node"
}

// unreached is what the module migration_peers notes, which others may follow.
var unreached = regexp.MustCompile(`Not reached over TLS: (.*?)(\. |$)`)

// unreachable returns the computes that a host says it has not reached. The last entry names none if
// the note has no room for all of them: "7 more", or what is left of a note that was cut.
func unreachable(note string) []string {
	found := unreached.FindStringSubmatch(note)
	if found == nil {
		return nil
	}
	text, isCut := strings.CutSuffix(found[1], "…")
	entries := strings.Split(text, ", ")
	if isCut && nameIn(entries[len(entries)-1]) != "" {
		entries = append(entries, "…")
	}
	return entries
}

// unreachable returns what counts of that: a compute that was configured since has tried
// the other direction.
func (m *Migration) unreachable() []string {
	tried := ended(m.compute, peersStep.Name)
	return slices.DeleteFunc(slices.Clone(m.compute.Status.LiveMigration.UnreachablePeers), func(entry string) bool {
		return m.peers.listensSince(nameIn(entry)).After(tried)
	})
}

// reachAgain has the step reach once more for all computes when each that it named was configured
// since: the status has no names of the others. Where it named none it would be run for ever.
func (m *Migration) reachAgain(t *edpm.Target) {
	all := m.compute.Status.LiveMigration.UnreachablePeers
	isNamed := func(entry string) bool { return nameIn(entry) != "" }
	if left := m.unreachable(); len(left) == 0 || slices.ContainsFunc(left, isNamed) || !slices.ContainsFunc(all, isNamed) {
		return
	}
	t.Rerun = "unreached-" + ended(m.compute, peersStep.Name).UTC().Format(time.RFC3339)
	if t.Tokens = maps.Clone(t.Tokens); t.Tokens == nil {
		t.Tokens = map[string]string{}
	}
	t.Tokens["unreached"] = t.Rerun
}

// IsConfigured reports whether all that live migration takes has once been brought to the host of a
// compute, and the others let it in.
func IsConfigured(compute *novav1.NovaExternalCompute) bool {
	return addressOf(compute) != "" && compute.Status.Hash[peersStep.Name] != ""
}

// Reaches reports whether the host of a compute reaches libvirt on that of another one, as far as
// is known.
func Reaches(from, to *novav1.NovaExternalCompute) bool {
	isNamed := slices.ContainsFunc(peerOf(from).unreachable, func(unreached string) bool { return nameIn(unreached) == to.Name })
	return !isNamed || listensSince(to).After(ended(from, peersStep.Name))
}

// nameIn returns the compute that a host has not reached, by an entry in which the reason follows it in
// brackets; empty for one that names none.
func nameIn(entry string) string {
	name, _, isNamed := strings.Cut(entry, " (")
	if !isNamed {
		return ""
	}
	return name
}

// PeerChanges lets through what Settle and Advance read of a compute, and that it is created or no longer
// exists.
var PeerChanges = watch.Changes(func(obj client.Object) (seen struct {
	address   string
	disks     novav1.ColdMigrationStatus
	qemu      novav1.QEMUAuthority
	hasRun    bool
	isJoining bool
}) {
	compute := obj.(*novav1.NovaExternalCompute)
	seen.qemu, seen.hasRun = authorityOf(compute), hasCertificate(compute)
	seen.address, seen.disks, seen.isJoining = addressOf(obj), ptr.Deref(compute.Status.ColdMigration, seen.disks), isJoining(compute)
	return seen
})

// Settle says in the status of a cell which computes let one another in. Those that are on
// their way are waited for: each change is a run on all hosts of the cell.
func Settle(cell *novav1.NovaCell, computes []novav1.NovaExternalCompute) {
	peers := map[string]peer{}
	for i := range computes {
		c := &computes[i]
		if isJoining(c) {
			return
		}
		peers[c.Name] = peerOf(c)
	}
	cell.Status.MigrationPeers = digest(peers, peer.identity)
}

// isJoining reports whether a compute is about to have its address, or to be in a run.
func isJoining(c *novav1.NovaExternalCompute) bool {
	isDue := func(t condition.Type) bool {
		shown := c.Status.Conditions.Get(t)
		return shown != nil && (shown.Reason == condition.Reason(edpm.Pending) || shown.Reason == condition.Reason(edpm.Running))
	}
	return c.DeletionTimestamp.IsZero() &&
		(c.Status.ObservedGeneration == 0 || isDue(condition.DeploymentReadyCondition) || isDue(novav1.LiveMigrationReadyCondition))
}

func addressOf(obj client.Object) string {
	if status := obj.(*novav1.NovaExternalCompute).Status.LiveMigration; status != nil {
		return status.Address
	}
	return ""
}
