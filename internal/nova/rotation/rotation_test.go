package rotation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

const present = "present"

// compute is one whose last configuration is that of the hash, with a condition DeploymentReady.
func compute(hash string, deployed ...*condition.Condition) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Name: "host"}}
	c.Status.ConfigHash = hash
	for _, d := range deployed {
		c.Status.Conditions.Set(d)
	}
	return c
}

func withStep(c *novav1.NovaExternalCompute) *novav1.NovaExternalCompute {
	c.Status.Hash = map[string]string{novav1.NovaStep: "a"}
	return c
}

func TestAPartIsCurrentOnlyWithThePresentConfiguration(t *testing.T) {
	running := condition.FalseCondition(condition.DeploymentReadyCondition, "Running", condition.SeverityInfo, "x")
	unknown := condition.UnknownCondition(condition.DeploymentReadyCondition, condition.InitReason, "x")
	fresh := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: "cell"}}
	fresh.Status.ConfigRollout = &novav1.ConfigRollout{Total: 3, Current: 2, Outdated: []string{"n1"}, Inputs: present}
	changed := fresh.DeepCopy()
	changed.Generation = 1
	inPods := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Name: "ironic"}, Spec: novav1.NovaComputeSpec{Replicas: ptr.To[int32](2)}}
	inPods.Status.ConfigHash = present
	updating := inPods.DeepCopy()
	updating.Generation = 1
	for name, c := range map[string]struct {
		part Part
		want string
	}{
		"a host that runs it": {Compute(withStep(compute(present)), present), "1/1"},
		"a host that runs it and is in a run of something else": {Compute(withStep(compute(present, running)), present), "1/1"},
		"a host with the one before":                            {Compute(withStep(compute("before")), present), "0/1 host"},
		"a host of a version that noted none":                   {Compute(withStep(compute("")), present), "0/1 host"},
		"a host while no configuration is known":                {Compute(withStep(compute("")), ""), "0/1 host"},
		"a host whose first run has begun":                      {Compute(compute("", running), present), "0/1 host"},
		"a host that waits for its node before the first run":   {Compute(compute("", unknown), present), "0/0"},
		"pods that run it":                                      {Pods("api", &podifiedv1.Status{UpdatedCount: 2}, 2), "2/2"},
		"pods of which one is to be replaced":                   {Pods("api", &podifiedv1.Status{UpdatedCount: 1}, 2), "1/2 api"},
		"pods that do not exist yet":                            {Pods("api", nil, 1), "0/1 api"},
		"more pods than are wanted":                             {Pods("api", &podifiedv1.Status{UpdatedCount: 3}, 2), "2/2"},
		"computes in pods":                                      {PodCompute(inPods, present), "2/2"},
		"computes in pods of which the spec has changed":        {PodCompute(updating, present), "0/2 ironic"},
		"computes in pods with the configuration before":        {PodCompute(inPods, "next"), "0/2 ironic"},
		"a cell":                              {Cell(fresh, present), "2/3 n1"},
		"a cell that has not seen its inputs": {Cell(fresh, "next"), "0/3 cell"},
		"a cell that has not seen its spec":   {Cell(changed, present), "0/3 cell"},
		"a cell that does not know":           {Cell(&novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: "cell"}}, present), "0/1 cell"},
	} {
		if got := strings.TrimSpace(fmt.Sprintf("%d/%d %s", c.part.Current, c.part.Total, strings.Join(c.part.Outdated, " "))); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

func TestTheConditionSaysWhoIsOutdatedAndWhatIsHeld(t *testing.T) {
	many := func(n int) (parts []Part) {
		for i := range n {
			parts = append(parts, part(fmt.Sprintf("n%02d", i), 0, 1))
		}
		return parts
	}
	for want, c := range map[string]struct {
		parts            []Part
		former, troubles []string
	}{
		"True/Ready/: No pod or compute uses the configuration":                                                                                                 {},
		"True/Ready/: All 2 pods and computes run the present configuration":                                                                                    {parts: []Part{part("a", 2, 2)}},
		"True/Ready/: All 1 pods and computes run the present configuration. it cannot":                                                                         {parts: []Part{part("a", 1, 1)}, troubles: []string{"it cannot"}},
		"False/ConfigRollingOut/Info: 1 of 3 pods and computes run the present configuration. Others: a":                                                        {parts: []Part{part("a", 1, 3)}},
		"False/ConfigRollingOut/Info: 0 of 2 pods and computes run the present configuration. Others: n00, n01. Held until then: Secret old":                    {parts: many(2), former: []string{"old"}},
		"False/SecretNotHeld/Warning: 0 of 1 pods and computes run the present configuration. Others: n00. it cannot":                                           {parts: many(1), troubles: []string{"it cannot"}},
		"False/ConfigRollingOut/Info: 0 of 12 pods and computes run the present configuration. Others: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09, of 12": {parts: many(12)},
	} {
		conditions := condition.Conditions{}
		mark(&conditions, Sum("", c.parts...), c.former, c.troubles)
		got := conditions.Get(novav1.ConfigRolledOutCondition)
		if text := fmt.Sprintf("%s/%s/%s: %s", got.Status, got.Reason, got.Severity, got.Message); text != want {
			t.Errorf("%q; want %q", text, want)
		}
	}
}

func TestNoMoreThanTenAreNamed(t *testing.T) {
	sum := Sum("i", Part{Total: 30, Outdated: slices.Repeat([]string{"a"}, 9)}, Part{Total: 2, Current: 1, Outdated: []string{"b", "c"}})
	if len(sum.Outdated) != mostNames || sum.Total != 32 || sum.Current != 1 || sum.Inputs != "i" {
		t.Errorf("%+v", sum)
	}
}

func TestWhatRestartsServicesOfACellIsPartOfItsInputs(t *testing.T) {
	secret := map[string][]byte{"ServicePassword": []byte("p")}
	all := []string{
		Inputs(secret, nil), Inputs(map[string][]byte{"ServicePassword": []byte("q")}, nil),
		Inputs(secret, map[string]string{novav1.ComputesReleaseAnnotation: "1"}), Inputs(secret, map[string]string{novav1.CellMappingsAnnotation: "1"}),
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		t.Errorf("%v", all)
	}
	if Inputs(secret, map[string]string{"other": "x"}) != Inputs(secret, map[string]string{novav1.ComputesReleaseAnnotation: ""}) {
		t.Error("an annotation that is empty, or another one, counts")
	}
}

func TestAFinalizerNamesItsHolderInTheCharactersThatItMayHave(t *testing.T) {
	for name, want := range map[string]string{
		"cell1": "nova.openstack.org/novacell-cell1", strings.Repeat("c", 70): "nova.openstack.org/novacell-" + strings.Repeat("c", 43) + "-",
	} {
		h := &Holder{Kind: "novacell", Owner: &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		if got := h.finalizer(); !strings.HasPrefix(got, want) || len(got) > len("nova.openstack.org/")+maxName {
			t.Errorf("%s; want %s", got, want)
		}
	}
}
