package migration

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/login"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Cells has the computes of each cell, as events tell of them: if each of thousands read all
// others, the cost would grow with the square of their number.
type Cells struct {
	mu sync.Mutex
	of map[types.NamespacedName]*peers
}

// Watch has the cells learn of computes, and wakes a compute when one was configured that it did
// not reach, and when its cell has the computes that it waits for.
func (c *Cells) Watch(b *builder.Builder) {
	b.Watches(&novav1.NovaExternalCompute{}, handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watch.Queue) { wake(q, e.Object, c.note(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watch.Queue) { wake(q, e.ObjectNew, c.note(e.ObjectNew)) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watch.Queue) { wake(q, e.Object, c.forget(e.Object)) },
	})
}

func wake(q watch.Queue, obj client.Object, names []string) {
	for _, name := range names {
		q.Add(watch.Request(obj.GetNamespace(), name))
	}
}

// note returns which computes are to look again after a compute has changed.
func (c *Cells) note(obj client.Object) []string {
	compute := obj.(*novav1.NovaExternalCompute)
	return c.peersOf(compute).put(compute.Name, peerOf(compute))
}

// forget returns which computes are to look again after a compute has been deleted.
func (c *Cells) forget(obj client.Object) []string {
	compute := obj.(*novav1.NovaExternalCompute)
	names, isEmpty := c.peersOf(compute).remove(compute.Name)
	if isEmpty {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.of, cellOf(compute))
	}
	return names
}

// peersOf returns the computes of the cell that a compute is in.
func (c *Cells) peersOf(compute *novav1.NovaExternalCompute) *peers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[types.NamespacedName]*peers{}
	}
	of := c.of[cellOf(compute)]
	if of == nil {
		of = &peers{of: map[string]peer{}, awaited: map[string]string{}}
		c.of[cellOf(compute)] = of
	}
	return of
}

func cellOf(compute *novav1.NovaExternalCompute) types.NamespacedName {
	return types.NamespacedName{Namespace: compute.Namespace, Name: compute.Spec.CellName}
}

// peers are the computes of a cell.
type peers struct {
	mu sync.Mutex
	of map[string]peer // by name
	// joining is how many are about to have their address, or to be in a run.
	joining int
	// awaited has the computes that wait until all are those of a digest, by the cell.
	awaited map[string]string
	known
}

// known is what follows from the addresses and keys of computes, if it was asked for since one
// of them changed.
type known struct {
	identities, addresses string
	inventory             json.RawMessage
	keys                  string // that public is for
	public                map[string][]byte
}

// peer is what others of its cell need to know of a compute.
type peer struct {
	address, hostKey string
	isJoining        bool
	isRunning        bool // what others connect to
	listensSince     time.Time
	unreachable      []string
}

func peerOf(compute *novav1.NovaExternalCompute) peer {
	p := peer{
		address: addressOf(compute), hostKey: hostKeyOf(compute), isJoining: isJoining(compute),
		isRunning:    compute.Status.Hash[certificateStep.Name] != "" && compute.Status.Hash[libvirtStep] != "",
		listensSince: listensSince(compute),
	}
	if status := compute.Status.LiveMigration; status != nil {
		p.unreachable = status.UnreachablePeers
	}
	return p
}

// identity is the address, and the key of the host if disks are copied to it.
func (p peer) identity() string { return strings.TrimSpace(p.address + " " + p.hostKey) }

// put returns which computes are to look again when the named one is as given.
func (p *peers) put(name string, now peer) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	former, isKnown := p.of[name]
	p.of[name] = now
	p.changed(former, now)
	if isKnown && !former.listensSince.Equal(now.listensSince) {
		return append(p.complaining(name), p.arrived()...)
	}
	return p.arrived()
}

// remove returns which computes are to look again when the named one no longer exists, and
// whether there is none any more.
func (p *peers) remove(name string) (names []string, isEmpty bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed(p.of[name], peer{})
	delete(p.of, name)
	delete(p.awaited, name)
	return p.arrived(), len(p.of) == 0
}

// changed counts who joins, and drops what followed from the former address and key.
func (p *peers) changed(former, now peer) {
	if former.identity() != now.identity() {
		p.known = known{}
	}
	if former.isJoining {
		p.joining--
	}
	if now.isJoining {
		p.joining++
	}
}

// complaining are the computes that did not reach the named one.
func (p *peers) complaining(name string) []string {
	var names []string
	for complaining, peer := range p.of {
		if slices.ContainsFunc(peer.unreachable, func(unreached string) bool { return nameIn(unreached) == name }) {
			names = append(names, complaining)
		}
	}
	return names
}

// arrived are the computes that have waited for those that there are now. A cell never settles
// while one joins.
func (p *peers) arrived() []string {
	if len(p.awaited) == 0 || p.joining > 0 {
		return nil
	}
	var names []string
	for name, digest := range p.awaited {
		if digest == p.digest() {
			names = append(names, name)
			delete(p.awaited, name)
		}
	}
	return names
}

// settled reports whether the digest, by its cell, is that of the computes as they are, the given one
// among them, and whether others are about to join.
func (p *peers) settled(compute *novav1.NovaExternalCompute, digest string) (isSettled, othersJoin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.of[compute.Name]
	others := p.joining
	if seen.isJoining {
		others--
	}
	if seen.identity() != peerOf(compute).identity() || p.digest() != digest {
		p.awaited[compute.Name] = digest
		return false, others > 0
	}
	delete(p.awaited, compute.Name)
	return true, others > 0
}

// digest identifies the computes that have an address, with their keys.
func (p *peers) digest() string {
	if p.identities == "" {
		p.identities = digest(p.of, peer.identity)
	}
	return p.identities
}

// digestOfAddresses identifies the computes that have an address.
func (p *peers) digestOfAddresses() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addresses == "" {
		p.addresses = digest(p.of, func(p peer) string { return p.address })
	}
	return p.addresses
}

// digest identifies the computes that have an address by their names and by what of returns.
func digest(peers map[string]peer, of func(peer) string) string {
	lines := make([]string, 0, len(peers))
	for name, peer := range peers {
		if peer.address != "" {
			lines = append(lines, name+"="+of(peer))
		}
	}
	slices.Sort(lines)
	return inputs.Digest(map[string][]byte{"peers": []byte(strings.Join(lines, " "))})[:32]
}

// count returns how many computes have an address, and to how many of these disks are copied.
func (p *peers) count() (addressed, copying int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range p.of {
		if peer.address != "" {
			addressed++
		}
		if peer.address != "" && peer.hostKey != "" {
			copying++
		}
	}
	return addressed, copying
}

// listensSince returns since when the named compute runs what others connect to.
func (p *peers) listensSince(name string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[name].listensSince
}

// files returns what lets the computes copy disks to one another by the keys, all of it public.
func (p *peers) files(keys *login.Keys) map[string][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := keys.Fingerprint() + " " + keys.Previous()
	if p.public == nil || p.keys != of {
		var hosts []login.Host
		for _, peer := range p.of {
			if peer.address != "" && peer.hostKey != "" {
				hosts = append(hosts, login.Host{Address: peer.address, Key: peer.hostKey})
			}
		}
		p.keys, p.public = of, keys.Public(hosts)
	}
	return p.public
}

// Variables that have what is known when they are written: all hosts of a run have the same then,
// and it is in their inventory once.
type (
	addressesByName struct{ *peers }
	running         struct{ *peers }
)

// MarshalJSON returns the addresses of the computes by name.
func (v addressesByName) MarshalJSON() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inventory != nil {
		return v.inventory, nil
	}
	addresses := map[string]string{}
	for name, peer := range v.of {
		if peer.address != "" {
			addresses[name] = peer.address
		}
	}
	var err error
	v.inventory, err = json.Marshal(addresses)
	return v.inventory, err
}

// MarshalJSON returns the names of the computes that run what others connect to.
func (v running) MarshalJSON() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := []string{}
	for name, peer := range v.of {
		if peer.address != "" && peer.isRunning {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return json.Marshal(names)
}
