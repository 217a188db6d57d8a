package metal

import (
	"cmp"
	"fmt"
	"slices"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

const (
	mebibytes = 1024
	gigabyte  = 1_000_000_000
)

// unmet returns which requirement the hardware of a host does not meet, empty if
// it meets all. Memory is counted in GiB and disks in GB, as baremetal-operator and
// upstream's OpenStackBaremetalSet count them.
//
// With hints, the requirements on a disk are those on the disk that the hints select.
func unmet(reqs *dataplanev1.HardwareReqs, hints *metal3v1.RootDeviceHints, host *metal3v1.BareMetalHost) string {
	if reqs == nil {
		reqs = &dataplanev1.HardwareReqs{}
	}
	if *reqs == (dataplanev1.HardwareReqs{}) && hints == nil {
		return ""
	}
	hw := host.Status.Hardware
	if hw == nil {
		return "has no hardware data, and baremetalSetTemplate.hardwareReqs or rootDeviceHints need them: inspect it"
	}
	storage := hw.Storage
	if hints != nil {
		if hasVolumes(host) {
			return "has RAID volumes, which its hardware data do not show, so that baremetalSetTemplate.rootDeviceHints cannot be compared: name it in spec.bareMetalHost of a node"
		}
		storage = slices.DeleteFunc(slices.Clone(storage), func(disk metal3v1.Storage) bool { return !matches(hints, &disk) })
		if len(storage) == 0 {
			return "has no disk that matches baremetalSetTemplate.rootDeviceHints"
		}
	}
	return cmp.Or(
		architecture(reqs.CPUReqs.Arch, hw.CPU.Arch),
		number("CPU cores", reqs.CPUReqs.CountReq.Count, hw.CPU.Count, reqs.CPUReqs.CountReq.ExactMatch),
		number("MHz", reqs.CPUReqs.MhzReq.Mhz, int(hw.CPU.ClockMegahertz), reqs.CPUReqs.MhzReq.ExactMatch),
		number("GiB of memory", reqs.MemReqs.GbReq.Gb, hw.RAMMebibytes/mebibytes, reqs.MemReqs.GbReq.ExactMatch),
		disks(reqs.DiskReqs, storage),
	)
}

// hasVolumes reports whether the host has RAID volumes, which are made after inspection.
func hasVolumes(host *metal3v1.BareMetalHost) bool {
	raid := host.Spec.RAID
	return raid != nil && len(raid.HardwareRAIDVolumes)+len(raid.SoftwareRAIDVolumes) > 0
}

func architecture(want, have string) string {
	if want == "" || want == have {
		return ""
	}
	return fmt.Sprintf("has architecture %s and not %s", cmp.Or(have, "unknown"), want)
}

func number(what string, want, have int, exact bool) string {
	switch {
	case want == 0 || have == want || have > want && !exact:
		return ""
	case exact:
		return fmt.Sprintf("does not have exactly %d %s", want, what)
	}
	return fmt.Sprintf("does not have >= %d %s", want, what)
}

// disks wants one disk that has all that is asked for.
func disks(reqs dataplanev1.DiskReqs, storage []metal3v1.Storage) string {
	gb, ssd := reqs.GbReq, reqs.SsdReq
	if gb.Gb == 0 && !ssd.Ssd && !ssd.ExactMatch {
		return ""
	}
	for _, disk := range storage {
		kind := !ssd.Ssd && !ssd.ExactMatch || disk.Rotational != ssd.Ssd
		if kind && number("", gb.Gb, int(disk.SizeBytes/gigabyte), gb.ExactMatch) == "" {
			return ""
		}
	}
	kind := "disk"
	switch {
	case ssd.Ssd:
		kind = "SSD"
	case ssd.ExactMatch:
		kind = "rotating disk"
	}
	if gb.Gb == 0 {
		return "has no " + kind
	}
	return fmt.Sprintf("has no %s of %s%d GB", kind, map[bool]string{false: ">= ", true: "exactly "}[gb.ExactMatch], gb.Gb)
}
