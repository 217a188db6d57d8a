package baremetalclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// provision gives a machine to a node whose role asks for bare metal, and follows that of
// one that has a machine whatever its role says now. The machine of a node on which
// something was run before it asked for one is left alone.
func (s *scope) provision(ctx context.Context) error {
	s.recallMachine()
	ready := s.inputsReady()
	if ready {
		if err := s.replaceMachine(ctx); err != nil {
			return err
		}
	}
	switch {
	case s.hasMachine():
		return s.followHost(ctx)
	case !metal.Asked(s.role):
		return s.forgetChoice()
	case s.node.Status.BareMetalHost == nil && dataplane.Deployed(s.node):
		if found, err := s.recallHost(ctx); err != nil || found {
			return cmp.Or(err, errNoted)
		}
		if s.replaceToken() == "" {
			return nil
		}
	}
	if !ready {
		return errNoted
	}
	return s.claimHost(ctx)
}

// hasMachine reports whether the node has claimed a machine.
func (s *scope) hasMachine() bool {
	return s.node.Status.BareMetalHost != nil && s.node.Status.BareMetalHost.Claimed
}

// choice is the name of the host that the node has chosen, empty without one.
func (s *scope) choice() string {
	if s.node.Status.BareMetalHost == nil {
		return ""
	}
	return s.node.Status.BareMetalHost.Name
}

// recallMachine notes that a node that was restored without its status has a
// machine, or was about to claim one: its finalizer says so. Which one it is, is
// found out by the consumers of BareMetalHosts; it never claims another one. A node that
// is new has the finalizer only after its first status.
func (s *scope) recallMachine() {
	status := &s.node.Status
	restored := status.ObservedGeneration == 0 || status.Unknown()
	if restored && status.BareMetalHost == nil && controllerutil.ContainsFinalizer(s.node, dataplanev1.MachineFinalizer) {
		status.BareMetalHost = s.newChoice("")
		status.BareMetalHost.Claimed = true
	}
}

// needKind is an error if there are no BareMetalHosts, and starts to watch them if there are.
func (s *scope) needKind(ctx context.Context) error {
	exists, err := s.metal.defined(ctx)
	if err != nil {
		return err
	}
	if !exists {
		return phase.Failing(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalKindMissingReason,
			"The resource definition of BareMetalHost (%s) does not exist: install baremetal-operator (Metal3), or set preProvisioned: true in the role", metal3v1.BareMetalHostCRD)
	}
	return s.metal.watchHosts(ctx, s.nodesOfHost)
}

// recallHost finds the machine of a node whose status was lost, by the consumer
// that the BareMetalHost notes. Without the kind there is none.
func (s *scope) recallHost(ctx context.Context) (bool, error) {
	exists, err := s.metal.defined(ctx)
	if err != nil || !exists {
		return false, err
	}
	hosts, err := s.hosts(ctx, s.Live)
	if err != nil {
		return false, err
	}
	return s.adoptOwn(hosts), nil
}

// adoptOwn notes the host that is claimed in the name of the node, if there is one.
func (s *scope) adoptOwn(hosts []metal3v1.BareMetalHost) bool {
	for i := range hosts {
		host := &hosts[i]
		if metal.ClaimedBy(host, s.node.Namespace, s.node.Name) {
			own := s.newChoice(host.Name)
			own.Claimed, own.Provisioned = true, host.Status.Provisioning.State == metal3v1.StateProvisioned
			s.node.Status.BareMetalHost = own
			return true
		}
	}
	return false
}

// hosts are the BareMetalHosts of the namespace.
func (s *scope) hosts(ctx context.Context, from client.Reader) ([]metal3v1.BareMetalHost, error) {
	list := &metal3v1.BareMetalHostList{}
	if err := from.List(ctx, list, client.InNamespace(s.node.Namespace)); err != nil {
		return nil, fmt.Errorf("listing BareMetalHosts: %w", err)
	}
	return list.Items, nil
}

// invalidTemplate is an error if the role says nothing that a machine can be
// provisioned with.
func (s *scope) invalidTemplate() error {
	t := s.role.Spec.BaremetalSetTemplate
	at := field.NewPath("spec", "baremetalSetTemplate")
	invalid := func(format string, args ...any) error {
		return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.InvalidSpecReason, "Role "+s.role.Name+": "+format, args...)
	}
	switch errs := metal.TemplateErrors(at, s.role.Namespace, t, s.role.Spec.NodeTemplate); {
	case len(errs) > 0:
		return invalid("%v", errs.ToAggregate())
	case t.Image == nil:
		return invalid("%s is missing: set url and checksum of the image to write, or set preProvisioned: true if the hosts run already", at.Child("image"))
	case s.eff.AnsibleUser == "":
		return invalid("nodeTemplate.ansibleUser is empty: set it to the user that cloud-init is to create, for example cloud-admin")
	}
	return nil
}

// claimHost chooses a host and claims it. What was chosen is in the status before
// anything is written elsewhere, so that no restart, and no second manager, makes
// the node claim another one.
func (s *scope) claimHost(ctx context.Context) error {
	if err := s.invalidTemplate(); err != nil {
		return err
	}
	if err := s.needKind(ctx); err != nil {
		return err
	}
	if s.node.Status.BareMetalHost == nil && dataplane.Deployed(s.node) {
		s.startAgain(s.replaceToken(), "")
		return errNoted
	}
	host, err := s.chooseHost(ctx)
	if err != nil || s.node.Status.BareMetalHost.Claimed {
		return cmp.Or(err, errNoted)
	}
	if err := s.checkRival(ctx); err != nil {
		return err
	}
	plan, err := s.writeBootData(ctx, host)
	if err != nil {
		return err
	}
	if err := s.writeClaim(ctx, host, plan); err != nil {
		return err
	}
	return s.followHost(ctx)
}

// checkRival waits as long as another node has the address: the controller of the node
// reports it.
func (s *scope) checkRival(ctx context.Context) error {
	rival, err := dataplane.FindRival(ctx, s.Client, dataplane.HostOf(s.node, s.eff))
	if err == nil && rival != nil {
		err = errNoted
	}
	return err
}

// forgetChoice drops a choice that was not acted on: the role no longer asks.
func (s *scope) forgetChoice() error {
	if s.choice() == "" {
		return nil
	}
	s.dropChoice()
	return nil
}

// dropChoice keeps of a choice only what the node had before.
func (s *scope) dropChoice() {
	kept := s.newChoice("")
	if s.node.Status.BareMetalHost = nil; kept.Replacement != "" {
		s.node.Status.BareMetalHost = &dataplanev1.ClaimedHost{Replacement: kept.Replacement, Former: kept.Former}
	}
}

// newChoice is what is noted of a host that the node has chosen, or has already.
// A token that was there before the node had any host is one that was followed.
func (s *scope) newChoice(host string) *dataplanev1.ClaimedHost {
	choice := &dataplanev1.ClaimedHost{Name: host, Address: s.intendedAddress(), ReclaimPolicy: s.policy(), Replacement: s.replaceToken()}
	if before := s.node.Status.BareMetalHost; before != nil {
		choice.Replacement, choice.Former = before.Replacement, before.Former
	}
	return choice
}

// chooseHost returns the host that the node has chosen, or nil when it has claimed one
// already. A choice stands as long as no one else has claimed the host. One that is
// new is only noted: no other node may have its address, which the phase machine
// finds out, and what is claimed is written over the version that has the choice.
// Whether there is a host at all is asked of the cache.
func (s *scope) chooseHost(ctx context.Context) (*metal3v1.BareMetalHost, error) {
	want, err := s.want(ctx)
	if err != nil {
		return nil, err
	}
	if s.choice() == "" {
		if err := s.anyHost(ctx, want); err != nil {
			return nil, err
		}
		if err := s.markMachine(ctx); err != nil {
			return nil, err
		}
	}
	hosts, err := s.hosts(ctx, s.Live)
	if err != nil || s.adoptOwn(hosts) {
		return nil, err
	}
	if host, err := s.chosenBefore(want, hosts); err != nil || host != nil {
		return host, err
	}
	host, err := s.acceptable(ctx, want, hosts)
	if err != nil {
		return nil, err
	}
	s.node.Status.BareMetalHost = s.newChoice(host.Name)
	return nil, errNoted
}

// mostTried is how many hosts are tried at a time to be claimed.
const mostTried = 10

// acceptable returns the host to claim: the best one whose claim is not refused in a dry run. A webhook
// of baremetal-operator judges the whole object, also what was there before, so that a host can refuse
// every change. If all are refused, the error is the refusal of the first.
func (s *scope) acceptable(ctx context.Context, want wanting, hosts []metal3v1.BareMetalHost) (*metal3v1.BareMetalHost, error) {
	var refusal error
	for range mostTried {
		host, err := want.from(hosts)
		if err != nil {
			return nil, cmp.Or(refusal, err)
		}
		err = s.patchClaim(ctx, host.DeepCopy(), *s.role.Spec.BaremetalSetTemplate.Image, client.DryRunAll)
		switch {
		case err == nil || apply.IsDryRunUnsupported(err):
			return host, nil
		case !apply.IsRefusal(err) || apply.IsUnanswered(err):
			return nil, s.claimError(host, err)
		}
		refusal = cmp.Or(refusal, s.claimError(host, err))
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(h metal3v1.BareMetalHost) bool { return h.Name == host.Name })
	}
	return nil, refusal
}

// anyHost is an error if the cache has no host that the node has or may claim. One
// that it has is not believed: it may have been released a moment ago.
func (s *scope) anyHost(ctx context.Context, want wanting) error {
	hosts, err := s.hosts(ctx, s.Client)
	if err != nil || slices.ContainsFunc(hosts, func(h metal3v1.BareMetalHost) bool { return metal.ClaimedBy(&h, s.node.Namespace, s.node.Name) }) {
		return err
	}
	_, err = want.from(hosts)
	return err
}

// chosenBefore returns the host that the node has noted, nil if it may not have it
// any more.
func (s *scope) chosenBefore(want wanting, hosts []metal3v1.BareMetalHost) (*metal3v1.BareMetalHost, error) {
	if s.choice() == "" {
		return nil, nil
	}
	want.Name = s.choice()
	host, _ := want.Choose(hosts)
	if host == nil && *want.failed == nil {
		s.dropChoice()
	}
	return host, *want.failed
}

// markMachine gives the node the finalizer of nodes with a machine, before it has one.
func (s *scope) markMachine(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(s.node, dataplanev1.MachineFinalizer) {
		return nil
	}
	if err := apply.Finalizer(ctx, s.Client, s.node, dataplanev1.MachineFinalizer, controllerutil.AddFinalizer); err != nil {
		return err
	}
	return errNoted
}

// wanting is what the node asks for, and the fault of a look-up on the way.
type wanting struct {
	metal.Want
	failed *error
}

// from returns the host to claim. The error says what is missing.
func (w wanting) from(hosts []metal3v1.BareMetalHost) (*metal3v1.BareMetalHost, error) {
	host, missing := w.Choose(hosts)
	switch {
	case *w.failed != nil:
		return nil, *w.failed
	case host == nil:
		return nil, phase.Failing(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "%s", missing)
	}
	return host, nil
}

func (s *scope) want(ctx context.Context) (wanting, error) {
	members, err := dataplane.NodesOfRole(ctx, s.Client, s.node.Namespace, s.role.Name)
	if err != nil {
		return wanting{}, err
	}
	t, names, fault := s.role.Spec.BaremetalSetTemplate, map[string]bool{}, new(error)
	for i := range members {
		names[members[i].Name] = true
	}
	return wanting{failed: fault, Want: metal.Want{
		Namespace: s.node.Namespace, Node: s.node.Name, Name: s.node.Spec.BareMetalHost, Former: s.former(),
		Labels: t.BmhLabelSelector, Hardware: t.HardwareReqs, Hints: t.RootDeviceHints, SpreadLabel: t.SpreadLabel, Members: names,
		Exists: func(node string) bool {
			err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: node}, &dataplanev1.OpenStackDataPlaneNode{})
			return !apierrors.IsNotFound(err)
		},
		Occupant: func(host *metal3v1.BareMetalHost) string {
			name, err := s.occupant(ctx, host)
			if err != nil {
				*fault = err
			}
			return name
		},
	}}, nil
}

// occupant is the node that is reached at an address that a NIC of the host had.
func (s *scope) occupant(ctx context.Context, host *metal3v1.BareMetalHost) (string, error) {
	if host.Status.Hardware == nil {
		return "", nil
	}
	for _, nic := range host.Status.Hardware.NICs {
		if nic.IP == "" {
			continue
		}
		rival, err := s.nodeAt(ctx, nic.IP)
		if err != nil {
			return "", err
		}
		if rival != nil && !hasHost(rival.Node, host) {
			return rival.Name(), nil
		}
	}
	return "", nil
}

// hasHost reports whether the node notes the host as its own. If that is free, the
// node has just released it.
func hasHost(node *dataplanev1.OpenStackDataPlaneNode, host *metal3v1.BareMetalHost) bool {
	return node.Namespace == host.Namespace && node.Status.BareMetalHost != nil && node.Status.BareMetalHost.Name == host.Name
}

// writeClaim claims the host as it was read, and says what it is to become. If
// another user was faster the error is a Conflict, and the next attempt sees it.
func (s *scope) writeClaim(ctx context.Context, host *metal3v1.BareMetalHost, plan metal.Plan) error {
	hash, err := plan.Hash()
	if err != nil {
		return err
	}
	if err := s.patchClaim(ctx, host, plan.Image); err != nil {
		return s.claimError(host, err)
	}
	claimed := s.node.Status.BareMetalHost
	claimed.Claimed, claimed.InputHash = true, hash
	return nil
}

// patchClaim writes the claim of the host, which has the answer afterwards.
func (s *scope) patchClaim(ctx context.Context, host *metal3v1.BareMetalHost, image metal3v1.Image, options ...client.PatchOption) error {
	t := s.role.Spec.BaremetalSetTemplate
	patch, err := metal.Claim{Node: s.node, Secret: metal.SecretName(s.node.Name), Image: image, Hints: t.RootDeviceHints, CleaningMode: t.AutomatedCleaningMode}.Patch(host)
	if err != nil {
		return err
	}
	return s.Patch(ctx, host, client.RawPatch(types.MergePatchType, patch), append(options, client.FieldOwner(fieldManager))...)
}

func (s *scope) claimError(host *metal3v1.BareMetalHost, err error) error {
	remedy := "Correct the BareMetalHost or baremetalSetTemplate, or register another host"
	if s.node.Spec.BareMetalHost != "" {
		remedy = "Correct the BareMetalHost or baremetalSetTemplate, or name another host in spec.bareMetalHost of the node"
	}
	return metal.WriteError(host, "Claiming", remedy, err)
}

// intendedAddress is the static address of the node, empty if it has none.
func (s *scope) intendedAddress() string {
	if s.role == nil || s.role.Spec.BaremetalSetTemplate == nil {
		return ""
	}
	if n := metal.NetworkOf(s.node, s.eff, s.role.Spec.BaremetalSetTemplate); n.Address.IsValid() {
		return n.Address.String()
	}
	return ""
}

// policy is what becomes of the machine when the node is deleted; empty if the role
// says nothing of machines.
func (s *scope) policy() string {
	switch {
	case s.role == nil || s.role.Spec.BaremetalSetTemplate == nil:
		return ""
	case s.role.Spec.BaremetalSetTemplate.ReclaimPolicy == "":
		return dataplanev1.ReclaimDeprovision
	}
	return s.role.Spec.BaremetalSetTemplate.ReclaimPolicy
}
