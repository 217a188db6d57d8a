package metal

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// machine is a free host with 32 cores, 64 GiB, and a rotating disk of 500 GB.
func machine(name string, changes ...func(*metal3v1.BareMetalHost)) metal3v1.BareMetalHost {
	host := metal3v1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "openstack"}}}
	host.Status.Provisioning.State = metal3v1.StateAvailable
	host.Status.OperationalStatus = "OK"
	host.Status.Hardware = &metal3v1.HardwareDetails{
		RAMMebibytes: 64 << 10, CPU: metal3v1.CPU{Arch: "x86_64", Count: 32, ClockMegahertz: 2400},
		Storage: []metal3v1.Storage{{Name: "/dev/sda", Rotational: true, SizeBytes: 500_000_000_000}},
		NICs:    []metal3v1.NIC{{Name: "eno1", MAC: "52:54:00:00:00:01", IP: "192.168.1.1", PXE: true}},
	}
	for _, change := range changes {
		change(&host)
	}
	return host
}

type change = func(*metal3v1.BareMetalHost)

func labelled(key, value string) change {
	return func(h *metal3v1.BareMetalHost) { h.Labels[key] = value }
}

func annotated(key string) change {
	return func(h *metal3v1.BareMetalHost) { h.Annotations = map[string]string{key: ""} }
}

func state(s metal3v1.ProvisioningState) change {
	return func(h *metal3v1.BareMetalHost) { h.Status.Provisioning.State = s }
}

func memory(gib int) change {
	return func(h *metal3v1.BareMetalHost) { h.Status.Hardware.RAMMebibytes = gib << 10 }
}

func claimedBy(kind, apiVersion, name string) change {
	return func(h *metal3v1.BareMetalHost) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: kind, APIVersion: apiVersion, Name: name, Namespace: "ns"}
	}
}

func byNode(name string) change {
	return claimedBy("OpenStackDataPlaneNode", "dataplane.openstack.org/v1beta1", name)
}

func failed(h *metal3v1.BareMetalHost) {
	h.Status.OperationalStatus, h.Status.ErrorType = metal3v1.StatusError, "inspection error"
}

func wants() Want {
	return Want{Namespace: "ns", Node: "n", Members: map[string]bool{"n": true, "a": true, "b": true}, Exists: func(name string) bool { return name != "gone" }}
}

func TestAHostThatIsNotFreeIsNotChosen(t *testing.T) {
	deleted := metav1.NewTime(time.Now())
	for name, c := range map[string]struct {
		change change
		says   string
	}{
		"another node has it":            {byNode("a"), "h is claimed by OpenStackDataPlaneNode a"},
		"a node that is gone has it":     {byNode("gone"), "OpenStackDataPlaneNode gone, which does not exist: create that node again, or remove spec.consumerRef"},
		"another consumer has it":        {claimedBy("Metal3Machine", "infrastructure.cluster.x-k8s.io/v1beta1", "m"), "h is claimed by Metal3Machine m"},
		"a consumer with a hostile name": {claimedBy("\x1b[2J", "v1", strings.Repeat("x", 100_000)), "h is claimed by  [2J xxx"},
		"a consumer without kind":        {claimedBy("", "", "x"), "h is claimed by an object x"},
		"it is unhealthy":                {annotated(metal3v1.UnhealthyAnnotation), "remove annotation capm3.metal3.io/unhealthy"},
		"it was marked by an old CAPM3":  {annotated(metal3v1.FormerUnhealthyAnnotation), "remove annotation capi.metal3.io/unhealthy"},
		"it is kept off":                 {annotated("reboot.metal3.io/poison-pill"), "remove annotation reboot.metal3.io/poison-pill"},
		"another cluster has it next":    {func(h *metal3v1.BareMetalHost) { h.Labels = map[string]string{metal3v1.NodeReuseLabel: "md-0"} }, "remove label infrastructure.cluster.x-k8s.io/node-reuse"},
		"its last message stands":        {func(h *metal3v1.BareMetalHost) { h.Status.ErrorMessage = "no power" }, "h is in error (no type)"},
		"it is paused":                   {annotated(metal3v1.PausedAnnotation), "remove annotation baremetalhost.metal3.io/paused"},
		"it is detached":                 {annotated(metal3v1.DetachedAnnotation), "h is detached"},
		"it is being detached":           {func(h *metal3v1.BareMetalHost) { h.Status.OperationalStatus = metal3v1.StatusDetached }, "h is detached"},
		"it is in error":                 {failed, "h is in error (inspection error)"},
		"its last error stands":          {func(h *metal3v1.BareMetalHost) { h.Status.ErrorType = "power management error" }, "h is in error (power management error)"},
		"it is externally provisioned":   {func(h *metal3v1.BareMetalHost) { h.Spec.ExternallyProvisioned = true }, "preProvisioned: true"},
		"its state says so":              {state(metal3v1.StateExternallyProvisioned), "preProvisioned: true"},
		"it is being deleted":            {func(h *metal3v1.BareMetalHost) { h.DeletionTimestamp = &deleted }, "h is being deleted"},
		"a user has given it an image":   {func(h *metal3v1.BareMetalHost) { h.Spec.Image = &metal3v1.Image{URL: "http://x"} }, "has an image of its own"},
		"it has a custom deploy":         {func(h *metal3v1.BareMetalHost) { h.Spec.CustomDeploy = &metal3v1.CustomDeploy{} }, "has an image of its own"},
		"a software RAID volume is root": {func(h *metal3v1.BareMetalHost) {
			h.Spec.RAID = &metal3v1.RAIDConfig{SoftwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "0"}, {Level: "1", RootVolume: true}}}
		}, "has a software RAID volume with rootVolume: true"},
		"it is inspected":         {state(metal3v1.StateInspecting), "h is not available yet (inspecting)"},
		"it is new":               {state(metal3v1.StateNone), "h is not available yet (not registered)"},
		"it is deprovisioned":     {state(metal3v1.StateDeprovisioning), "not available yet (deprovisioning)"},
		"it still runs something": {state(metal3v1.StateProvisioned), "not available yet (provisioned)"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, named := range []string{"", "h"} {
				want := wants()
				want.Name, want.Hints = named, &metal3v1.RootDeviceHints{Rotational: ptr.To(false)}
				host, missing := want.Choose([]metal3v1.BareMetalHost{machine("h", c.change)})
				if host != nil || !strings.Contains(strings.ReplaceAll(missing, " (spec.bareMetalHost)", ""), c.says) {
					t.Errorf("with name %q it chooses %v and says %q; want nothing, and %q", named, host, missing, c.says)
				}
				if len(missing) > 2000 {
					t.Errorf("with name %q the message has %d bytes", named, len(missing))
				}
			}
		})
	}
}

func TestAFreeHostIsChosen(t *testing.T) {
	for name, h := range map[string]metal3v1.BareMetalHost{
		"available":                           machine("h"),
		"ready, as it was called":             machine("h", state(metal3v1.StateReady)),
		"not inspected, without requirements": machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware = nil }),
	} {
		if host, missing := wants().Choose([]metal3v1.BareMetalHost{h}); host == nil {
			t.Errorf("%s: nothing is chosen: %s", name, missing)
		}
	}
}

func TestTheMachineThatWasReplacedIsTakenOnlyByItsName(t *testing.T) {
	want := wants()
	want.Former = "h"
	if host, missing := want.Choose([]metal3v1.BareMetalHost{machine("h")}); host != nil || !strings.Contains(missing, "1 of 1 BareMetalHosts are free, and none fits: h is the machine that n had before") {
		t.Errorf("it chooses %v and says %q", host, missing)
	}
	want.Name = "h"
	if host, missing := want.Choose([]metal3v1.BareMetalHost{machine("h")}); host == nil {
		t.Errorf("by its name it is not chosen: %s", missing)
	}
}

func TestTheHostOfAnotherNodeIsNotTaken(t *testing.T) {
	want := wants()
	want.Occupant = func(h *metal3v1.BareMetalHost) string {
		if h.Status.Hardware.NICs[0].IP == "192.168.1.1" {
			return "OpenStackDataPlaneNode x"
		}
		return ""
	}
	other := machine("z", func(h *metal3v1.BareMetalHost) { h.Status.Hardware.NICs[0].IP = "192.168.1.2" })
	if host, _ := want.Choose([]metal3v1.BareMetalHost{machine("a"), other}); host == nil || host.Name != "z" {
		t.Errorf("it chooses %v; want the host at which no node is", host)
	}
	if _, missing := want.Choose([]metal3v1.BareMetalHost{machine("a")}); !strings.Contains(missing, "a has an address of OpenStackDataPlaneNode x, which runs there already") {
		t.Errorf("it says %q", missing)
	}
}

func reqs(f func(*dataplanev1.HardwareReqs)) *dataplanev1.HardwareReqs {
	r := &dataplanev1.HardwareReqs{}
	f(r)
	return r
}

func TestHardwareRequirements(t *testing.T) {
	ssd := func(h *metal3v1.BareMetalHost) {
		h.Status.Hardware.Storage = append(h.Status.Hardware.Storage, metal3v1.Storage{Name: "/dev/nvme0n1", SizeBytes: 200_000_000_000})
	}
	for name, c := range map[string]struct {
		reqs  *dataplanev1.HardwareReqs
		hints *metal3v1.RootDeviceHints
		host  metal3v1.BareMetalHost
		says  string // empty when the host does
	}{
		"enough memory":                    {reqs(func(r *dataplanev1.HardwareReqs) { r.MemReqs.GbReq.Gb = 64 }), nil, machine("h"), ""},
		"too little memory":                {reqs(func(r *dataplanev1.HardwareReqs) { r.MemReqs.GbReq.Gb = 65 }), nil, machine("h"), "does not have >= 65 GiB of memory"},
		"too much memory":                  {reqs(func(r *dataplanev1.HardwareReqs) { r.MemReqs.GbReq = dataplanev1.MemGbReq{Gb: 32, ExactMatch: true} }), nil, machine("h"), "does not have exactly 32 GiB of memory"},
		"the architecture":                 {reqs(func(r *dataplanev1.HardwareReqs) { r.CPUReqs.Arch = "x86_64" }), nil, machine("h"), ""},
		"another architecture":             {reqs(func(r *dataplanev1.HardwareReqs) { r.CPUReqs.Arch = "aarch64" }), nil, machine("h"), "has architecture x86_64 and not aarch64"},
		"cores":                            {reqs(func(r *dataplanev1.HardwareReqs) { r.CPUReqs.CountReq.Count = 33 }), nil, machine("h"), "does not have >= 33 CPU cores"},
		"clock":                            {reqs(func(r *dataplanev1.HardwareReqs) { r.CPUReqs.MhzReq.Mhz = 2401 }), nil, machine("h"), "does not have >= 2401 MHz"},
		"a large disk":                     {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.GbReq.Gb = 500 }), nil, machine("h"), ""},
		"a larger disk":                    {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.GbReq.Gb = 501 }), nil, machine("h"), "has no disk of >= 501 GB"},
		"an SSD":                           {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.SsdReq.Ssd = true }), nil, machine("h"), "has no SSD"},
		"an SSD that is there":             {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.SsdReq.Ssd = true }), nil, machine("h", ssd), ""},
		"a large SSD next to a large disk": {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.SsdReq.Ssd = true; r.DiskReqs.GbReq.Gb = 400 }), nil, machine("h", ssd), "has no SSD of >= 400 GB"},
		"any disk, ssd false":              {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.GbReq.Gb = 100 }), nil, machine("h", ssd), ""},
		"only a rotating disk":             {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.SsdReq.ExactMatch = true; r.DiskReqs.GbReq.Gb = 600 }), nil, machine("h", ssd), "has no rotating disk of >= 600 GB"},
		"hardware that is unknown":         {reqs(func(r *dataplanev1.HardwareReqs) { r.MemReqs.GbReq.Gb = 1 }), nil, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware = nil }), "has no hardware data"},
		"requirements of nothing":          {&dataplanev1.HardwareReqs{}, nil, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware = nil }), ""},
		"a hint":                           {nil, &metal3v1.RootDeviceHints{DeviceName: "/dev/sda", MinSizeGigabytes: 465, Rotational: ptr.To(true)}, machine("h"), ""},
		"a size that is one in GB only":    {nil, &metal3v1.RootDeviceHints{MinSizeGigabytes: 466}, machine("h"), "has no disk that matches baremetalSetTemplate.rootDeviceHints"},
		"a hint that no disk matches":      {nil, &metal3v1.RootDeviceHints{Rotational: ptr.To(false)}, machine("h"), "has no disk that matches baremetalSetTemplate.rootDeviceHints"},
		"a disk that is not the hinted":    {reqs(func(r *dataplanev1.HardwareReqs) { r.DiskReqs.GbReq.Gb = 400 }), &metal3v1.RootDeviceHints{Rotational: ptr.To(false)}, machine("h", ssd), "has no disk of >= 400 GB"},
		"a link to the hinted disk": {nil, &metal3v1.RootDeviceHints{DeviceName: "/dev/disk/by-path/x"}, machine("h", func(h *metal3v1.BareMetalHost) {
			h.Status.Hardware.Storage[0].AlternateNames = []string{"/dev/sda", "/dev/disk/by-path/x"}
		}), ""},
		"the name of a disk that has a link": {nil, &metal3v1.RootDeviceHints{DeviceName: "/dev/sda"}, machine("h", func(h *metal3v1.BareMetalHost) {
			h.Status.Hardware.Storage[0].Name, h.Status.Hardware.Storage[0].AlternateNames = "/dev/disk/by-path/x", []string{"/dev/sda", "/dev/disk/by-path/x"}
		}), ""},
		"RAID volumes and a hint": {nil, &metal3v1.RootDeviceHints{DeviceName: "/dev/sda"}, machine("h", func(h *metal3v1.BareMetalHost) {
			h.Spec.RAID = &metal3v1.RAIDConfig{HardwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "1"}}}
		}), "has RAID volumes, which its hardware data do not show"},
		"RAID volumes without a hint": {nil, nil, machine("h", func(h *metal3v1.BareMetalHost) {
			h.Spec.RAID = &metal3v1.RAIDConfig{HardwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "1"}}}
		}), ""},
		"a part of the model":                  {nil, &metal3v1.RootDeviceHints{Model: "PM9"}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware.Storage[0].Model = "SAMSUNG PM983" }), ""},
		"another serial number":                {nil, &metal3v1.RootDeviceHints{SerialNumber: "1"}, machine("h"), "has no disk that matches"},
		"a hint, and hardware that is unknown": {nil, &metal3v1.RootDeviceHints{WWN: "1"}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware = nil }), "has no hardware data"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unmet(c.reqs, c.hints, &c.host); got != c.says && (c.says == "" || !strings.HasPrefix(got, c.says)) {
				t.Errorf("it says %q; want %q", got, c.says)
			}
		})
	}
}

func TestWhatIsMissingIsCounted(t *testing.T) {
	want := wants()
	want.Labels, want.Hardware = map[string]string{"app": "openstack"}, reqs(func(r *dataplanev1.HardwareReqs) { r.MemReqs.GbReq.Gb = 64 })
	hosts := []metal3v1.BareMetalHost{
		machine("small-1", memory(32)), machine("small-2", memory(16)), machine("used", byNode("a")), machine("broken", failed),
		machine("other", labelled("app", "other")), machine("small-3", memory(48)),
	}
	_, missing := want.Choose(hosts)
	for _, part := range []string{
		"3 of 5 BareMetalHosts with labels app=openstack are free, and none fits: small-1, small-2, small-3 does not have >= 64 GiB of memory; ",
		"used is claimed by OpenStackDataPlaneNode a", "broken is in error",
	} {
		if !strings.Contains(missing, part) {
			t.Errorf("it says %q; want %q in it", missing, part)
		}
	}
	if _, missing := want.Choose(nil); !strings.Contains(missing, "There are no BareMetalHosts with labels app=openstack") {
		t.Errorf("without hosts it says %q", missing)
	}
	want.Name = "absent"
	if _, missing := want.Choose(hosts); !strings.Contains(missing, "absent (spec.bareMetalHost) does not exist in namespace ns") {
		t.Errorf("of a name that does not exist it says %q", missing)
	}
}

func TestAMessageStaysShort(t *testing.T) {
	var hosts []metal3v1.BareMetalHost
	for _, s := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		for _, n := range []string{"1", "2", "3", "4", "5"} {
			hosts = append(hosts, machine(s+n, byNode("node-"+s)))
		}
	}
	_, missing := wants().Choose(hosts)
	if !strings.Contains(missing, "a1, a2, a3 and 2 more is claimed by OpenStackDataPlaneNode node-a") || !strings.HasSuffix(missing, "and 3 more problems") {
		t.Errorf("it says %q", missing)
	}
}

func TestTheChoiceDoesNotDependOnTheOrder(t *testing.T) {
	hosts := []metal3v1.BareMetalHost{machine("c"), machine("a", byNode("x")), machine("b"), machine("d")}
	for range 20 {
		rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		if host, _ := wants().Choose(hosts); host == nil || host.Name != "b" {
			t.Fatalf("it chooses %v of %v; want b", host, hosts)
		}
	}
}

func TestNodesOfARoleAreSpreadOverALabel(t *testing.T) {
	rack := func(value string) change { return labelled("rack", value) }
	for name, c := range map[string]struct {
		hosts []metal3v1.BareMetalHost
		want  string
	}{
		"the emptier rack":                             {[]metal3v1.BareMetalHost{machine("a", rack("1"), byNode("a")), machine("b", rack("1")), machine("c", rack("2"))}, "c"},
		"both racks have one":                          {[]metal3v1.BareMetalHost{machine("a", rack("1"), byNode("a")), machine("b", rack("1")), machine("c", rack("2"), byNode("b")), machine("d", rack("2"))}, "b"},
		"nodes of other roles":                         {[]metal3v1.BareMetalHost{machine("a", rack("1"), byNode("stranger")), machine("b", rack("1")), machine("c", rack("2"))}, "b"},
		"the emptier rack has none free":               {[]metal3v1.BareMetalHost{machine("a", rack("1"), byNode("a")), machine("b", rack("1")), machine("c", rack("2"), failed)}, "b"},
		"a host without the label is last":             {[]metal3v1.BareMetalHost{machine("a"), machine("b", rack("1"), byNode("a")), machine("c", rack("1"))}, "c"},
		"a host without the label is better than none": {[]metal3v1.BareMetalHost{machine("a")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			want := wants()
			want.SpreadLabel = "rack"
			if host, missing := want.Choose(c.hosts); host == nil || host.Name != c.want {
				t.Errorf("it chooses %v (%s); want %s", host, missing, c.want)
			}
		})
	}
}
