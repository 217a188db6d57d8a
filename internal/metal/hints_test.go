package metal

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

var hintDraws = flag.Int("hint-draws", 200, "random hosts and hints that are compared with ironic-lib")

func TestHints(t *testing.T) {
	disk := metal3v1.Storage{
		Name: "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0", AlternateNames: []string{"/dev/sda", "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0"},
		SizeBytes: 480_103_981_056, Model: "PERC H730P Mini", Vendor: "DELL", SerialNumber: "S3YJNB0K1234", HCTL: "0:2:0:0",
	}
	for name, c := range map[string]struct {
		hints metal3v1.RootDeviceHints
		want  bool
	}{
		"a size in GiB":                      {metal3v1.RootDeviceHints{MinSizeGigabytes: 447}, true},
		"a size that the disk has in GB":     {metal3v1.RootDeviceHints{MinSizeGigabytes: 450}, false},
		"a part of a gibibyte":               {metal3v1.RootDeviceHints{MinSizeGigabytes: 448}, false},
		"a serial number in another case":    {metal3v1.RootDeviceHints{SerialNumber: "s3yjnb0k1234"}, true},
		"a part of a serial number":          {metal3v1.RootDeviceHints{SerialNumber: "S3YJ"}, false},
		"a part of the model":                {metal3v1.RootDeviceHints{Model: "h730p mini"}, true},
		"the vendor in another case":         {metal3v1.RootDeviceHints{Vendor: "dell"}, true},
		"a name":                             {metal3v1.RootDeviceHints{DeviceName: "/dev/sda"}, true},
		"a link":                             {metal3v1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0"}, true},
		"another link":                       {metal3v1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:1:0"}, false},
		"a hint of what the disk has not":    {metal3v1.RootDeviceHints{WWN: "0x5000c500"}, false},
		"a hint of nothing but space":        {metal3v1.RootDeviceHints{Vendor: " "}, false},
		"rotating, of a disk that does not":  {metal3v1.RootDeviceHints{Rotational: ptr.To(true)}, false},
		"all of them, and one does not hold": {metal3v1.RootDeviceHints{Vendor: "dell", MinSizeGigabytes: 447, HCTL: "0:2:0:1"}, false},
	} {
		if got := matches(&c.hints, &disk); got != c.want {
			t.Errorf("%s: it matches: %v; want %v", name, got, c.want)
		}
	}
}

// drawn is a host and hints, for testdata/ask_ironic_lib.py.
type drawn struct {
	Hints   map[string]string `json:"hints"`
	Devices []map[string]any  `json:"devices"`
	hints   metal3v1.RootDeviceHints
	disks   []metal3v1.Storage
}

// hintMap is MakeHintMap of baremetal-operator at commit 02aa5059,
// pkg/provisioner/ironic/devicehints/devicehints.go (Apache License 2.0).
func hintMap(h metal3v1.RootDeviceHints) map[string]string {
	hints := map[string]string{}
	set := func(name, operator, value string) {
		if value != "" {
			hints[name] = operator + " " + value
		}
	}
	name := "name"
	if len(h.DeviceName) > len(byPath) && h.DeviceName[:len(byPath)] == byPath {
		name = "by_path"
	}
	set(name, "s==", h.DeviceName)
	set("hctl", "s==", h.HCTL)
	set("model", "<in>", h.Model)
	set("vendor", "<in>", h.Vendor)
	set("serial", "s==", h.SerialNumber)
	set("wwn", "s==", h.WWN)
	set("wwn_with_extension", "s==", h.WWNWithExtension)
	set("wwn_vendor_extension", "s==", h.WWNVendorExtension)
	if h.MinSizeGigabytes != 0 {
		text, _ := json.Marshal(h.MinSizeGigabytes)
		set("size", ">=", string(text))
	}
	if h.Rotational != nil {
		hints["rotational"] = map[bool]string{true: "true", false: "false"}[*h.Rotational]
	}
	return hints
}

// draw draws a host with one to four disks, and hints that often are taken from one of
// them, with changes that may matter.
func draw(random *rand.Rand) drawn {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	d := drawn{}
	for i := range 1 + random.IntN(4) {
		name, link := "/dev/sd"+string(rune('a'+i)), pick("", byPath+"pci-0000:00:1f.2-ata-"+string(rune('1'+i)))
		disk := metal3v1.Storage{
			Name: name, AlternateNames: []string{name}, Rotational: random.IntN(2) == 0,
			SizeBytes: []int64{480_103_981_056, 450 * gibibyte, 450*gibibyte - 1, 500_000_000_000, 0}[random.IntN(5)],
			Vendor:    pick("", "DELL", "ATA", "Dell Inc."), Model: pick("", "PERC H730P Mini", "SAMSUNG MZ7LH480", "a b%20c", "Größe"), SerialNumber: pick("", "S3YJ", "s3yj", " S3YJ "),
			HCTL: pick("", "0:0:0:0", "1:0:0:0"), WWN: pick("", "0x5000C500", "0x5000c500"), WWNWithExtension: pick("", "0x5000c5000x1"), WWNVendorExtension: pick("", "0x1"),
		}
		if link != "" {
			disk.Name, disk.AlternateNames = link, []string{name, link} // as getStorageDetails of baremetal-operator has it
		}
		d.disks = append(d.disks, disk)
		d.Devices = append(d.Devices, map[string]any{
			"name": name, "by_path": link, "size": disk.SizeBytes, "model": disk.Model, "vendor": disk.Vendor, "serial": disk.SerialNumber, "hctl": disk.HCTL,
			"wwn": disk.WWN, "wwn_with_extension": disk.WWNWithExtension, "wwn_vendor_extension": disk.WWNVendorExtension, "rotational": disk.Rotational,
		})
	}
	like := d.disks[random.IntN(len(d.disks))]
	maybe := func(values ...string) string {
		if random.IntN(3) > 0 {
			return ""
		}
		return pick(values...)
	}
	d.hints = metal3v1.RootDeviceHints{
		DeviceName: maybe(like.Name, like.AlternateNames[0], "/dev/sdz", byPath+"other", "/DEV/SDA"), HCTL: maybe(like.HCTL, "0:0:0:1"),
		Model: maybe(like.Model, "h730p", "samsung mz", "20", "grö", "x"), Vendor: maybe(like.Vendor, "dell", "inc"), SerialNumber: maybe(like.SerialNumber, "s3yj", "S3"),
		WWN: maybe(like.WWN, "0X5000C500"), WWNWithExtension: maybe(like.WWNWithExtension), WWNVendorExtension: maybe(like.WWNVendorExtension),
	}
	if random.IntN(2) == 0 {
		d.hints.MinSizeGigabytes = []int{0, 447, 448, 450, 465, 466, 480, 500}[random.IntN(8)]
	}
	if random.IntN(4) == 0 {
		d.hints.Rotational = ptr.To(random.IntN(2) == 0)
	}
	d.Hints = hintMap(d.hints)
	return d
}

func TestHintsAgreeWithIronicLib(t *testing.T) {
	dir := needs.IronicLib(t)
	random := rand.New(rand.NewPCG(3, 9))
	var draws []drawn
	for range *hintDraws {
		draws = append(draws, draw(random))
	}
	answers, matched := askIronicLib(t, dir, draws), 0
	for i, d := range draws {
		got := []int{}
		for j := range d.disks {
			if matches(&d.hints, &d.disks[j]) {
				got = append(got, j)
			}
		}
		if !slices.Equal(got, answers[i]) {
			t.Fatalf("draw %d: hints %v of disks %s match %v; ironic-lib says %v", i, d.Hints, text(d.Devices), got, answers[i])
		}
		matched += min(1, len(got))
	}
	if matched < len(draws)/10 || matched > len(draws)*9/10 {
		t.Errorf("in %d of %d draws a disk matches: the draws say little", matched, len(draws))
	}
}

// askIronicLib returns the disks that ironic-lib finds in each draw.
func askIronicLib(t *testing.T, dir string, draws []drawn) (answers [][]int) {
	t.Helper()
	asked, err := json.Marshal(draws)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "-B", filepath.Join("testdata", "ask_ironic_lib.py"), dir)
	cmd.Env, cmd.Stdin = append(os.Environ(), "PYTHONPATH="+dir), bytes.NewReader(asked)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &answers)
	}
	if err != nil || len(answers) != len(draws) {
		t.Fatalf("ironic-lib: %v\n%s", err, stderr.String())
	}
	return answers
}
