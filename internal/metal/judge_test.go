package metal

import (
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// given is a host that has got its image, in a state.
func given(s metal3v1.ProvisioningState, changes ...change) metal3v1.BareMetalHost {
	host := machine("h", append([]change{byNode("n"), state(s)}, changes...)...)
	host.Spec.Image, host.Spec.Online, host.Status.PoweredOn = &metal3v1.Image{URL: "http://i"}, true, true
	for _, c := range changes {
		c(&host)
	}
	return host
}

func TestEachStateHasAReasonThatSaysWhatToDo(t *testing.T) {
	deleted := metav1.NewTime(time.Now())
	off := func(h *metal3v1.BareMetalHost) { h.Status.PoweredOn = false }
	for name, c := range map[string]struct {
		host   metal3v1.BareMetalHost
		before bool
		reason condition.Reason
		says   string
	}{
		"new":                             {given(metal3v1.StateNone), false, dataplanev1.MetalRegisteringReason, "see whether baremetal-operator runs"},
		"without credentials":             {given(metal3v1.StateUnmanaged), false, dataplanev1.MetalRegisteringReason, "set spec.bmc.address"},
		"registering":                     {given(metal3v1.StateRegistering), false, dataplanev1.MetalRegisteringReason, "is being registered"},
		"inspecting":                      {given(metal3v1.StateInspecting), false, dataplanev1.MetalInspectingReason, "is being inspected"},
		"preparing":                       {given(metal3v1.StatePreparing), false, dataplanev1.MetalPreparingReason, "is being prepared"},
		"about to be provisioned":         {given(metal3v1.StateAvailable), false, dataplanev1.MetalProvisioningReason, "is being provisioned"},
		"provisioning":                    {given(metal3v1.StateProvisioning), false, dataplanev1.MetalProvisioningReason, "the console of the machine"},
		"a state that is new to us":       {given("rescuing"), false, dataplanev1.MetalProvisioningReason, `is "rescuing"`},
		"provisioned":                     {given(metal3v1.StateProvisioned), false, "", ""},
		"still provisioned":               {given(metal3v1.StateProvisioned), true, "", ""},
		"made external while in use":      {given(metal3v1.StateExternallyProvisioned), true, "", ""},
		"made external before":            {given(metal3v1.StateExternallyProvisioned), false, dataplanev1.MetalDeprovisionedReason, "undo spec.externallyProvisioned"},
		"powered off":                     {given(metal3v1.StateProvisioned, off), true, dataplanev1.MetalPoweredOffReason, "waiting for baremetal-operator to power it on"},
		"powered off by a person":         {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) { h.Spec.Online = false }), true, dataplanev1.MetalPoweredOffReason, "spec.online is false: set it to true"},
		"in error":                        {given(metal3v1.StateProvisioning, failed, func(h *metal3v1.BareMetalHost) { h.Status.ErrorMessage = "no disk" }), false, dataplanev1.MetalErrorReason, "inspection error: no disk"},
		"in error with a hostile message": {given(metal3v1.StateProvisioning, failed, func(h *metal3v1.BareMetalHost) { h.Status.ErrorMessage = "\x1b[2J" + strings.Repeat("x", 100_000) }), false, dataplanev1.MetalErrorReason, "inspection error:  [2Jxxx"},
		"in error without a word":         {given(metal3v1.StateProvisioning, func(h *metal3v1.BareMetalHost) { h.Status.OperationalStatus = metal3v1.StatusError }), false, dataplanev1.MetalErrorReason, "error: no message"},
		"paused":                          {given(metal3v1.StateProvisioning, annotated(metal3v1.PausedAnnotation)), false, dataplanev1.MetalPausedReason, "Remove annotation baremetalhost.metal3.io/paused"},
		"deprovisioned by somebody":       {given(metal3v1.StateDeprovisioning), true, dataplanev1.MetalDeprovisionedReason, "this node did not ask for it"},
		"its image was taken away":        {given(metal3v1.StateProvisioned, func(h *metal3v1.BareMetalHost) { h.Spec.Image = nil }), true, dataplanev1.MetalDeprovisionedReason, "who removed spec.image"},
		"free again after it was used":    {given(metal3v1.StateAvailable), true, dataplanev1.MetalDeprovisionedReason, "The node does not provision it again"},
		"restored without its status":     {given(metal3v1.StateNone), true, dataplanev1.MetalDeprovisionedReason, "wait if baremetal-operator reads a restored object again"},
		"deleted while in use":            {given(metal3v1.StateProvisioned, func(h *metal3v1.BareMetalHost) { h.DeletionTimestamp = &deleted }), true, dataplanev1.MetalHostLostReason, "is being deleted while this node uses it"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(&c.host, c.before)
			if v.Reason != c.reason || !strings.Contains(v.Message, c.says) || v.Done() != (c.reason == "") {
				t.Errorf("the verdict is %+v; want reason %q and %q", v, c.reason, c.says)
			}
			if !v.Done() && !strings.Contains(v.Message, "BareMetalHost h ") && !strings.Contains(v.Message, "BareMetalHost h:") {
				t.Errorf("it does not name the host: %q", v.Message)
			}
		})
	}
}

func TestAHostThatIsNeverPoweredOffStaysOn(t *testing.T) {
	host := machine("h", func(h *metal3v1.BareMetalHost) { h.Spec.DisablePowerOff = true })
	if patch, err := Deprovision(&host); err != nil || strings.Contains(string(patch), "online") {
		t.Errorf("the patch is %s, %v", patch, err)
	}
}

func TestAClaimIsForTheHostAsItWasRead(t *testing.T) {
	host := machine("h")
	host.UID, host.ResourceVersion = "u", "42"
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "node-uid"}}
	got, err := Claim{Node: node, Secret: "s", Image: metal3v1.Image{URL: "http://i", Checksum: "abc"}, CleaningMode: "disabled"}.Patch(&host)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"edpm.openstack.org/before-claim":"{\"before\":{\"online\":false},` +
		`\"claimed\":{\"online\":true,\"userData\":{\"name\":\"s\",\"namespace\":\"ns\"},\"networkData\":{\"name\":\"s\",\"namespace\":\"ns\"},\"automatedCleaningMode\":\"disabled\"}}"},` +
		`"resourceVersion":"42","uid":"u"},"spec":{"automatedCleaningMode":"disabled",` +
		`"consumerRef":{"kind":"OpenStackDataPlaneNode","namespace":"ns","name":"n","uid":"node-uid","apiVersion":"dataplane.openstack.org/v1beta1"},` +
		`"image":{"url":"http://i","checksum":"abc","checksumType":"auto"},"networkData":{"name":"s","namespace":"ns"},"online":true,"userData":{"name":"s","namespace":"ns"}}}`
	if string(got) != want {
		t.Errorf("the claim is\n%s\nwant\n%s", got, want)
	}
	for name, patch := range map[string]func(*metal3v1.BareMetalHost) ([]byte, error){"deprovision": Deprovision, "free": Free, "detach": Detach} {
		got, err := patch(&host)
		if err != nil || !strings.Contains(string(got), `"resourceVersion":"42","uid":"u"`) {
			t.Errorf("%s is %s, %v; it has to be for the host as it was read", name, got, err)
		}
	}
}

func TestAHostIsOffOnlyIfThatIsCertainAndStaysSo(t *testing.T) {
	off := func(h *metal3v1.BareMetalHost) { h.Spec.Online, h.Status.PoweredOn = false, false }
	deleted := metav1.NewTime(time.Now())
	for name, c := range map[string]struct {
		host metal3v1.BareMetalHost
		want bool
	}{
		"off":                     {given(metal3v1.StateProvisioned, off), true},
		"off, of another tool":    {given(metal3v1.StateExternallyProvisioned, off), true},
		"on":                      {given(metal3v1.StateProvisioned), false},
		"about to be powered on":  {given(metal3v1.StateProvisioned, func(h *metal3v1.BareMetalHost) { h.Status.PoweredOn = false }), false},
		"about to be powered off": {given(metal3v1.StateProvisioned, func(h *metal3v1.BareMetalHost) { h.Spec.Online = false }), false},
		"of an operator that is told to do nothing": {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) {
			h.Annotations = map[string]string{metal3v1.PausedAnnotation: ""}
		}), false},
		"of an operator that is about to work with it no longer": {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) {
			h.Annotations = map[string]string{metal3v1.DetachedAnnotation: ""}
		}), false},
		"of an operator that works with it no longer": {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) {
			h.Status.OperationalStatus = metal3v1.StatusDetached
		}), false},
		"of an operator that does not reach its BMC": {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) {
			h.Status.ErrorType = "power management error"
		}), false},
		"being deleted":       {given(metal3v1.StateProvisioned, off, func(h *metal3v1.BareMetalHost) { h.DeletionTimestamp = &deleted }), false},
		"not provisioned yet": {given(metal3v1.StateProvisioning, off), false},
		"without credentials": {given(metal3v1.StateUnmanaged, off), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsOff(&c.host); got != c.want {
				t.Errorf("it is off: %t", got)
			}
		})
	}
}
