package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The databases of the image have the address in the catalog, and the passwords.
func TestTheControllerIsWhatItsImageSays(t *testing.T) {
	path := filepath.Join("..", "..", "images", controllerMachine(false).image, "rootfs", "etc", "lab", "environment")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[key] = value
	}
	if variables["ADDRESS"] != controller.IP {
		t.Errorf("the image has address %q, the lab gives it %q", variables["ADDRESS"], controller.IP)
	}
	if !strings.HasPrefix(variables["COMPUTE"], "http://"+nodeIP+":") {
		t.Errorf("the catalog of the image has nova's API at %q, and the node is at %s", variables["COMPUTE"], nodeIP)
	}
	for _, want := range []string{
		"export OS_AUTH_URL=http://" + variables["ADDRESS"] + ":5000/v3\n",
		"export OS_PASSWORD=" + variables["PASSWORD"] + "\n",
		"export OS_REGION_NAME=" + variables["REGION"] + "\n",
	} {
		if !strings.Contains(OpenRC(), want) {
			t.Errorf("%q is not in what openrc prints:\n%s", want, OpenRC())
		}
	}
}

func TestGuestsRunByKVMWhereTheProcessorHasIt(t *testing.T) {
	const with, without = "flags\t\t: fpu vmx est\n", "flags\t\t: fpu hypervisor lahf_lm\n"
	for _, c := range []struct {
		name   string
		device bool
		cpu    string
		want   string
	}{
		{"Intel", true, with, "kvm"},
		{"AMD", true, "flags\t\t: fpu svm extapic\n", "kvm"},
		{"a device without a processor that can", true, without, "qemu"},
		{"a processor whose device is missing", false, with, "qemu"},
		{"neither", false, without, "qemu"},
	} {
		if got := virtType(c.device, c.cpu); got != c.want {
			t.Errorf("%s: guests run by %s, want %s", c.name, got, c.want)
		}
	}
}
