package metal

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// patched is a host after a merge patch.
func patched(t *testing.T, host *metal3v1.BareMetalHost, patch []byte, err error) *metal3v1.BareMetalHost {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(host)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatal(err)
	}
	out := &metal3v1.BareMetalHost{}
	if err := json.Unmarshal(after, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func claim(t *testing.T, host *metal3v1.BareMetalHost, c Claim) *metal3v1.BareMetalHost {
	t.Helper()
	c.Node = &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "u"}}
	c.Secret, c.Image = SecretName("n"), metal3v1.Image{URL: "http://i", Checksum: "abc"}
	patch, err := c.Patch(host)
	return patched(t, host, patch, err)
}

func release(t *testing.T, host *metal3v1.BareMetalHost) *metal3v1.BareMetalHost {
	t.Helper()
	for _, change := range []func(*metal3v1.BareMetalHost) ([]byte, error){Deprovision, Free} {
		patch, err := change(host)
		host = patched(t, host, patch, err)
	}
	return host
}

// randomHints are hints in which each field is set, or is not.
func randomHints(random *rand.Rand) *metal3v1.RootDeviceHints {
	if random.IntN(3) == 0 {
		return nil
	}
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	return &metal3v1.RootDeviceHints{DeviceName: pick("", "/dev/sda"), SerialNumber: pick("", "s1", "s2"), MinSizeGigabytes: random.IntN(3), Model: pick("", "m")}
}

func TestAHostIsGivenBackAsItWas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ref := func(name string) *corev1.SecretReference {
		if random.IntN(2) == 0 {
			return nil
		}
		return &corev1.SecretReference{Name: name}
	}
	for range 500 {
		host := machine("h", func(h *metal3v1.BareMetalHost) {
			h.Spec.Online, h.Spec.UserData, h.Spec.NetworkData = random.IntN(2) == 0, ref("admin-user"), ref("admin-net")
			h.Spec.AutomatedCleaningMode = []string{"", "metadata", "disabled"}[random.IntN(3)]
			h.Spec.RootDeviceHints = randomHints(random)
		})
		claimed := claim(t, &host, Claim{Hints: randomHints(random), CleaningMode: []string{"", "disabled"}[random.IntN(2)]})
		if !claimed.Spec.Online || claimed.Spec.UserData.Name != SecretName("n") || claimed.Spec.NetworkData.Name != SecretName("n") {
			t.Fatalf("the claimed host is %+v", claimed.Spec)
		}
		if released := release(t, claimed); !equality.Semantic.DeepEqual(released.Spec, host.Spec) || released.Annotations[common.BeforeClaimAnnotation] != "" {
			t.Fatalf("it was\n%s\nand is\n%s", text(host.Spec), text(released))
		}
	}
}

func text(value any) string {
	out, _ := json.MarshalIndent(value, "", " ")
	return string(out)
}

func TestWhatAPersonChangesOfAClaimedHostStays(t *testing.T) {
	host := machine("h", func(h *metal3v1.BareMetalHost) { h.Spec.NetworkData = &corev1.SecretReference{Name: "admin-net"} })
	claimed := claim(t, &host, Claim{Hints: &metal3v1.RootDeviceHints{DeviceName: "/dev/sda"}})
	claimed.Spec.NetworkData, claimed.Spec.RootDeviceHints = &corev1.SecretReference{Name: "new-net"}, &metal3v1.RootDeviceHints{WWN: "w"}
	released := release(t, claimed)
	if released.Spec.NetworkData.Name != "new-net" || released.Spec.RootDeviceHints.WWN != "w" || released.Spec.UserData != nil {
		t.Errorf("the released host is %s", text(released.Spec))
	}
}

func TestAClaimThatWasRemovedIsNotTakenForTheHostsOwn(t *testing.T) {
	host := machine("h", func(h *metal3v1.BareMetalHost) { h.Spec.NetworkData = &corev1.SecretReference{Name: "admin-net"} })
	left := claim(t, &host, Claim{CleaningMode: "disabled"})
	left.Spec.ConsumerRef, left.Spec.Image = nil, nil // as a person does
	released := release(t, claim(t, left, Claim{}))
	if !equality.Semantic.DeepEqual(released.Spec, host.Spec) {
		t.Errorf("the released host is %s", text(released.Spec))
	}
}

func TestAReleaseIsOneThatIsNotRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		check  func(metal3v1.BareMetalHostSpec) bool
	}{
		"never powered off since": {func(h *metal3v1.BareMetalHost) { h.Spec.DisablePowerOff = true }, func(s metal3v1.BareMetalHostSpec) bool { return s.Online }},
		"network data of another namespace": {func(h *metal3v1.BareMetalHost) {
			h.Annotations[common.BeforeClaimAnnotation] = strings.Replace(h.Annotations[common.BeforeClaimAnnotation], `"networkData":{"name":"admin-net"}`, `"networkData":{"name":"x","namespace":"kube-system"}`, 1)
		}, func(s metal3v1.BareMetalHostSpec) bool { return s.NetworkData == nil }},
		"a note that is none": {func(h *metal3v1.BareMetalHost) { h.Annotations[common.BeforeClaimAnnotation] = "\x00{" }, func(s metal3v1.BareMetalHostSpec) bool { return s.NetworkData == nil && s.UserData == nil && !s.Online }},
		"an empty note":       {func(h *metal3v1.BareMetalHost) { h.Annotations[common.BeforeClaimAnnotation] = "{}" }, func(s metal3v1.BareMetalHostSpec) bool { return s.NetworkData == nil && s.UserData == nil }},
		"an earlier version":  {func(h *metal3v1.BareMetalHost) { h.Annotations = nil }, func(s metal3v1.BareMetalHostSpec) bool { return s.NetworkData == nil && s.UserData == nil && !s.Online }},
		"a note of wrong types": {func(h *metal3v1.BareMetalHost) {
			h.Annotations[common.BeforeClaimAnnotation] = `{"before":{"online":"x"}}`
		}, func(s metal3v1.BareMetalHostSpec) bool { return !s.Online }},
	} {
		host := machine("h", func(h *metal3v1.BareMetalHost) { h.Spec.NetworkData = &corev1.SecretReference{Name: "admin-net"} })
		claimed := claim(t, &host, Claim{})
		c.change(claimed)
		if released := release(t, claimed); !c.check(released.Spec) {
			t.Errorf("%s: the released host is %s", name, text(released.Spec))
		}
	}
}

func TestADetachedHostRunsOnAndHasItsOwnFields(t *testing.T) {
	host := machine("h", func(h *metal3v1.BareMetalHost) { h.Spec.NetworkData = &corev1.SecretReference{Name: "admin-net"} })
	claimed := claim(t, &host, Claim{})
	patch, err := Detach(claimed)
	detached := patched(t, claimed, patch, err)
	if s := detached.Spec; !s.Online || s.Image == nil || s.ConsumerRef != nil || s.NetworkData.Name != "admin-net" || s.UserData != nil {
		t.Errorf("the detached host is %s", text(detached.Spec))
	}
}
