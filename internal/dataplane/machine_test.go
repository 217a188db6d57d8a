package dataplane

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
)

const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPiG1dsVVVsPIMPZ9JmPQVAwFbXzXjqMZUaxPSBEqRIN"
)

type node = dataplanev1.OpenStackDataPlaneNode

// nodeAt is a node with an address; change can alter it.
func nodeAt(namespace, name, address string, change ...func(*node)) *node {
	n := &node{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	n.Spec.AnsibleHost = address
	for _, c := range change {
		c(n)
	}
	return n
}

func deployed(n *node) { n.Status.Set("install-os", "hash", common.RunRecord{Name: "r", Serial: 1}) }
func restored(n *node) { n.Status.SetUnknown() }
func shows(key string) func(*node) {
	return func(n *node) { n.Status.HostKey = key }
}
func deleted(n *node) {
	now := metav1.Now()
	n.DeletionTimestamp, n.Finalizers = &now, []string{dataplanev1.NodeFinalizer}
}

// cluster is a cache with the nodes.
func cluster(t *testing.T, nodes ...*node) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&node{}, RoleIndex, func(o client.Object) []string { return []string{Role(o)} }).
		WithIndex(&node{}, MachineIndex, indexMachine).
		WithIndex(&dataplanev1.OpenStackDataPlaneRole{}, MachineIndex, indexMachineOfRole)
	for _, n := range nodes {
		b = b.WithObjects(n)
	}
	return b.Build()
}

// hostOf is the host of a node without a role.
func hostOf(t *testing.T, n *node) Host {
	t.Helper()
	eff, err := inherit.EffectiveOf(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return HostOf(n, eff)
}

func TestWhichNodesAreOneMachine(t *testing.T) {
	const address = "10.0.0.1"
	for name, c := range map[string]struct {
		me, other *node
		rival     bool
		occupied  bool
	}{
		"another address":                           {nodeAt("ns", "a", address), nodeAt("ns", "b", "10.0.0.2"), false, false},
		"one address":                               {nodeAt("ns", "a", address), nodeAt("ns", "b", address), true, false},
		"one address, deployed":                     {nodeAt("ns", "a", address), nodeAt("ns", "b", address, deployed), true, true},
		"one address, deployed, being deleted":      {nodeAt("ns", "a", address), nodeAt("ns", "b", address, deployed, deleted), true, false},
		"one address, another key":                  {nodeAt("ns", "a", address, shows(keyA)), nodeAt("ns", "b", address, deployed, shows(keyB)), true, false},
		"one key, another address":                  {nodeAt("ns", "a", address, shows(keyA)), nodeAt("ns", "b", "10.0.0.2", deployed, shows(keyA+" root@b")), true, true},
		"a key that is not known":                   {nodeAt("ns", "a", address), nodeAt("ns", "b", "10.0.0.2", shows(keyA)), false, false},
		"the name of the other is the address":      {nodeAt("ns", "a", "B."), nodeAt("ns", "b", ""), true, false},
		"elsewhere, not deployed":                   {nodeAt("ns", "a", address), nodeAt("other", "b", address), false, false},
		"elsewhere, not deployed, the key claimed":  {nodeAt("ns", "a", address, shows(keyA)), nodeAt("other", "b", address, shows(keyA)), false, false},
		"elsewhere, as if it was restored":          {nodeAt("ns", "a", address), nodeAt("other", "b", address, restored), false, false},
		"elsewhere, restored, and run since":        {nodeAt("ns", "a", address), nodeAt("other", "b", address, restored, deployed), true, true},
		"as if it was restored":                     {nodeAt("ns", "a", address), nodeAt("ns", "b", address, restored), true, true},
		"elsewhere, deployed":                       {nodeAt("ns", "a", address), nodeAt("other", "b", address, deployed), true, true},
		"elsewhere, deployed, of the same name":     {nodeAt("ns", "a", address), nodeAt("other", "a", address, deployed), true, true},
		"elsewhere, deployed, another key":          {nodeAt("ns", "a", address, shows(keyA)), nodeAt("other", "b", address, deployed, shows(keyB)), false, false},
		"elsewhere, a name without a domain":        {nodeAt("ns", "a", "edpm-0"), nodeAt("other", "b", "edpm-0", deployed), false, false},
		"elsewhere, a name without a domain, a key": {nodeAt("ns", "a", "edpm-0", shows(keyA)), nodeAt("other", "b", "edpm-0", deployed, shows(keyA)), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(t, c.me, c.other)
			rival, err := FindRival(context.Background(), api, hostOf(t, c.me))
			if err != nil || (rival != nil) != c.rival {
				t.Errorf("the rival is %+v, %v; want one: %v", rival, err, c.rival)
			}
			occupant, err := FindOccupant(context.Background(), api, hostOf(t, c.me))
			if err != nil || (occupant != nil) != c.occupied {
				t.Errorf("the occupant is %+v, %v; want one: %v", occupant, err, c.occupied)
			}
		})
	}
}

func TestANodeThatStaysComesBeforeOneThatIsDeleted(t *testing.T) {
	me := nodeAt("ns", "me", "10.0.0.1")
	api := cluster(t, me, nodeAt("ns", "a", "10.0.0.1", deleted), nodeAt("ns", "b", "10.0.0.1"))
	rival, err := FindRival(context.Background(), api, hostOf(t, me))
	if err != nil || rival == nil || rival.Node.Name != "b" {
		t.Errorf("the rival is %+v, %v; want b, for which a person has to decide", rival, err)
	}
}

func TestObjectsOfAnotherNamespaceAreNotNamed(t *testing.T) {
	me := nodeAt("ns", "me", "10.0.0.1")
	api := cluster(t, me, nodeAt("secret-project", "hidden", "10.0.0.1", deployed))
	rival, err := FindRival(context.Background(), api, hostOf(t, me))
	if err != nil || rival == nil {
		t.Fatalf("the rival is %+v, %v; want one", rival, err)
	}
	got := rival.ConflictMessage()
	if strings.Contains(got, "hidden") || strings.Contains(got, "secret-project") || !strings.HasPrefix(got, "A node of another namespace is the same machine") {
		t.Errorf("the message is %q; it must not name the other", got)
	}
}

func TestThoseThatMayBeTheSameMachineAreWoken(t *testing.T) {
	me := nodeAt("ns", "me", "10.0.0.1", shows(keyA))
	api := cluster(t, me, nodeAt("ns", "a", "10.0.0.1"), nodeAt("other", "b", "10.0.0.2", shows(keyA)), nodeAt("ns", "c", "10.0.0.3"))
	woken := map[string]bool{}
	for _, r := range Rivals(api)(context.Background(), me) {
		woken[r.String()] = true
	}
	if len(woken) != 2 || !woken["ns/a"] || !woken["other/b"] {
		t.Errorf("woken are %v; want ns/a and other/b", woken)
	}
}
