package metal

import (
	"slices"
	"strings"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// byPath is where links have names by which ironic compares them with links, and all other
// names with those of devices.
const byPath = "/dev/disk/by-path/"

// gibibyte is the unit of MinSizeGigabytes, whatever its name says.
const gibibyte = 1 << 30

// matches reports whether a disk is one that the hints select, as ironic decides it: what
// baremetal-operator makes of hints (MakeHintMap in pkg/provisioner/ironic/devicehints) is compared by
// find_devices_by_hints of ironic-lib, with which a test compares this.
func matches(hints *metal3v1.RootDeviceHints, disk *metal3v1.Storage) bool {
	return isNamed(disk, hints.DeviceName) &&
		equalsHint(disk.HCTL, hints.HCTL) && equalsHint(disk.SerialNumber, hints.SerialNumber) && equalsHint(disk.WWN, hints.WWN) &&
		equalsHint(disk.WWNWithExtension, hints.WWNWithExtension) && equalsHint(disk.WWNVendorExtension, hints.WWNVendorExtension) &&
		containsHint(disk.Model, hints.Model) && containsHint(disk.Vendor, hints.Vendor) &&
		(hints.MinSizeGigabytes == 0 || disk.SizeBytes >= int64(hints.MinSizeGigabytes)*gibibyte) &&
		(hints.Rotational == nil || *hints.Rotational == disk.Rotational)
}

// isNamed reports whether one of the names of a disk, of the same kind, is the hint.
func isNamed(disk *metal3v1.Storage, hint string) bool {
	if hint == "" {
		return true
	}
	link := strings.HasPrefix(hint, byPath)
	return slices.ContainsFunc(append([]string{disk.Name}, disk.AlternateNames...), func(name string) bool {
		return strings.HasPrefix(name, byPath) == link && equalsHint(name, hint)
	})
}

// equalsHint is ironic's operator s==. A disk whose value is unknown matches no hint.
func equalsHint(value, hint string) bool {
	value = normalize(value)
	return hint == "" || value != "" && value == normalize(hint)
}

// containsHint is ironic's operator <in>.
func containsHint(value, hint string) bool {
	value, part := normalize(value), normalize(hint)
	return hint == "" || value != "" && part != "" && strings.Contains(value, part)
}

// normalize returns text as ironic compares it: in lower case, without space around it, and
// encoded as in URLs (_normalize_hint_expression), so that a part is one of the encoded text.
func normalize(text string) string {
	var out strings.Builder
	for _, b := range []byte(strings.ToLower(strings.TrimSpace(text))) {
		if 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || strings.IndexByte("_.-~/", b) >= 0 {
			out.WriteByte(b)
			continue
		}
		const digits = "0123456789ABCDEF"
		out.WriteString("%" + string(digits[b>>4]) + string(digits[b&15]))
	}
	return out.String()
}
