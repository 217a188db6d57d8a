package hosted

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const agentFinalizer = "example.org/agent"

func newAgent(uid types.UID, finalizers ...string) *agent {
	return &agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: uid, Finalizers: finalizers}}
}

func TestAnObjectWithItsFinalizerAndNoStatusWasRestoredUnlessItWasBornHere(t *testing.T) {
	b := newCreations()
	b.note("created")
	reported := newAgent("reported", agentFinalizer)
	reported.Status.ObservedGeneration = 1
	for name, c := range map[string]struct {
		obj  *agent
		want bool
	}{
		"created here":                        {newAgent("created", agentFinalizer), false},
		"another object of its name":          {newAgent("other", agentFinalizer), true},
		"made by a person":                    {newAgent("theirs"), false},
		"with another finalizer":              {newAgent("theirs", "example.org/other"), false},
		"one that has its status":             {reported, false},
		"created here, and no longer with it": {newAgent("created"), false},
	} {
		if got := b.restored(c.obj, agentFinalizer); got != c.want {
			t.Errorf("%s: restored is %t, want %t", name, got, c.want)
		}
	}
}

// A backup that brings an object back as it was before its first status brings its
// UID back, too.
func TestABirthIsForgottenOnceTheObjectHasAStatus(t *testing.T) {
	b := newCreations()
	b.note("created")
	reported := newAgent("created", agentFinalizer)
	reported.Status.ObservedGeneration = 1
	b.restored(reported, agentFinalizer)
	if !b.restored(newAgent("created", agentFinalizer), agentFinalizer) {
		t.Error("an object that has lost its status counts as new")
	}
}

func TestAnObjectIsNotJudgedWhileItIsBeingCreated(t *testing.T) {
	b := newCreations()
	obj := newAgent("created", agentFinalizer)
	end := b.begin(types.NamespacedName{Namespace: "ns", Name: "n"})
	if !b.undecided(obj, agentFinalizer) {
		t.Error("the answer to the creation has not come, but the object is judged")
	}
	b.note("created")
	if b.undecided(obj, agentFinalizer) {
		t.Error("the object was created here, but is not judged")
	}
	end()
	if other := newAgent("other", agentFinalizer); b.undecided(other, agentFinalizer) || !b.restored(other, agentFinalizer) {
		t.Error("nothing is being created, but an object that was restored does not count as such")
	}
}

// live is a reader past the cache that has one agent.
type live struct {
	client.Reader
	agent *agent
}

func (l live) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	*obj.(*agent) = *l.agent
	return nil
}

func TestAnObjectThatTheCacheShowsWithoutItsStatusIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(*agent)
		late, unknown bool
	}{
		"it has none":                      {func(*agent) {}, false, true},
		"it has one":                       {func(a *agent) { a.Status.ObservedGeneration = 1 }, true, false},
		"it is another object of its name": {func(a *agent) { a.UID = "other" }, true, false},
	} {
		s := newScope(Parts{})
		s.restored = true
		there := s.Object.DeepCopyObject().(*agent)
		c.change(there)
		s.Live = live{agent: there}
		if err := s.detectRestore(t.Context()); apierrors.IsConflict(err) != c.late || err != nil && !c.late {
			t.Errorf("%s: the error is %v; a conflict is wanted: %t", name, err, c.late)
		}
		if got := s.status.Unknown(); got != c.unknown {
			t.Errorf("%s: it is taken for restored: %t; want %t", name, got, c.unknown)
		}
	}
}
