package catalogue_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// known is a catalogue that has been stored and read again.
func known(t testing.TB) *catalogue.Catalogue {
	t.Helper()
	file, err := os.Open("testdata/generated.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	parsed, err := catalogue.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := parsed.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := catalogue.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed, read); diff != "" {
		t.Fatalf("a catalogue that is stored (-before +after):\n%s", diff)
	}
	return read
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"what the image knows and can read is in order": {"[DEFAULT]\ndebug = True\n[libvirt]\nvirt_type = kvm\nnum_pcie_ports = 28", nil},
		"an option that is misspelt is a warning with the nearest name": {"[libvirt]\ncpu_mdoe = none",
			[]string{"line 2: the image does not know [libvirt] cpu_mdoe and ignores it: do you mean [libvirt] cpu_mode?"}},
		"an option of a section that is misspelt has the option that is meant": {"[libvrt]\n\ncpu_mode = none",
			[]string{"line 3: the image does not know [libvrt] cpu_mode and ignores it: do you mean [libvirt] cpu_mode?"}},
		"an option in another section has the one that has it": {"[DEFAULT]\nvirt_type = kvm",
			[]string{"line 2: the image does not know [DEFAULT] virt_type and ignores it: do you mean [libvirt] virt_type?"}},
		"an option that is like none is a warning alone": {"[DEFAULT]\nsomething = else", []string{"line 2: the image does not know [DEFAULT] something and ignores it"}},
		"a section that is misspelt has the one that is meant": {"[libvrt]\nsomething = else",
			[]string{"line 2: the image does not know [libvrt] something and ignores it: do you mean section [libvirt]?"}},
		"the section DEFAULT is found in capital letters only": {"[default]\ndebug = true",
			[]string{"line 2: the image does not know [default] debug and ignores it: do you mean [DEFAULT] debug?"}},
		"other sections are found in any case":          {"[Libvirt]\nnum_pcie_ports = 29", []string{"refused line 2: [Libvirt] num_pcie_ports is \"29\", but should be an integer from 0 to 28"}},
		"the name of an option in a file has no dashes": {"[neutron]\nauth-url = http://k", []string{"line 2: the image does not know [neutron] auth-url and ignores it: do you mean [neutron] auth_url?"}},
		"a value of another type is refused":            {"[DEFAULT]\ndebug = yes please", []string{`refused line 2: [DEFAULT] debug is "yes please", but should be true or false`}},
		"a value that is no choice is refused": {"[libvirt]\ncpu_mode = host-passthru",
			[]string{`refused line 2: [libvirt] cpu_mode is "host-passthru", but should be one of "host-model", "host-passthrough", "custom", "none"`}},
		"a choice in another case is a warning":               {"[libvirt]\nvirt_type = KVM", []string{`line 2: the case of [libvirt] virt_type may count: write "kvm"`}},
		"a value out of range is refused":                     {"[DEFAULT]\nreserved_host_memory_mb = -1", []string{`refused line 2: [DEFAULT] reserved_host_memory_mb is "-1", but should be an integer of at least 0`}},
		"an option that is called otherwise names that":       {"[libvirt]\nnum_iscsi_scan_tries = 3", []string{"line 2: [libvirt] num_iscsi_scan_tries is deprecated: write [libvirt] num_volume_scan_tries"}},
		"an option that is in another section now names that": {"[DEFAULT]\nlibvirt_type = kvm", []string{"line 2: [DEFAULT] libvirt_type is deprecated: write [libvirt] virt_type"}},
		"a value under a former name is judged": {"[libvirt]\nnum_iscsi_scan_tries = few",
			[]string{"line 2: [libvirt] num_iscsi_scan_tries is deprecated: write [libvirt] num_volume_scan_tries",
				`refused line 2: [libvirt] num_iscsi_scan_tries is "few", but should be an integer`}},
		"a value under a former name does not count next to the present one": {"[libvirt]\nnum_volume_scan_tries = 3\nnum_iscsi_scan_tries = few",
			[]string{"line 3: [libvirt] num_iscsi_scan_tries is deprecated: write [libvirt] num_volume_scan_tries"}},
		"an option that is to be removed has the reason": {"[DEFAULT]\nconfig_drive_format = vfat",
			[]string{"line 2: [DEFAULT] config_drive_format is deprecated and will be removed: A workaround for a bug in libvirt"}},
		"the last value counts":                               {"[DEFAULT]\ndebug = maybe\ndebug = true", nil},
		"the last value counts in all spellings of a section": {"[LIBVIRT]\nnum_pcie_ports = x\n[libvirt]\nnum_pcie_ports = 1", nil},
		"all values of a multi-valued option count":           {"[cache]\ntries = x\ntries = 1", []string{`refused line 2: [cache] tries is "x", but should be an integer`}},
		"a value with another option in it is not judged":     {"[libvirt]\nnum_pcie_ports = $reserved_host_memory_mb", nil},
		"an option of the section can be referred to":         {"[libvirt]\ncpu_mode = ${virt_type}", nil},
		"a section can be named":                              {"[DEFAULT]\nmy_ip = ${libvirt.virt_type}x", nil},
		"a reference to nothing is refused":                   {"[DEFAULT]\nmy_ip = $myip", []string{"refused line 2: [DEFAULT] my_ip refers to $myip, which is not an option of the image: write $$ for a $"}},
		"a former name can be referred to":                    {"[DEFAULT]\nmy_ip = $libvirt_type\n[libvirt]\ncpu_mode = $num_iscsi_scan_tries\nvirt_type = $libvirt_type", nil},
		"all values of an option count that the image says to be multi-valued": {"[DEFAULT]\nreserved_huge_pages = none\nreserved_huge_pages = node:0,size:2048,count:64",
			[]string{`refused line 2: [DEFAULT] reserved_huge_pages is "none", but should be pairs name:value, separated by commas, each name once`}},
		"a section is no option":                            {"[DEFAULT]\nmy_ip = $libvirt", []string{"refused line 2: [DEFAULT] my_ip refers to $libvirt, which is not an option of the image: write $$ for a $"}},
		"a $ that is escaped is no reference":               {"[DEFAULT]\nmy_ip = $$x\\$y$5", nil},
		"a password with a $ is not shown":                  {"[neutron]\npassword = abc$def", []string{"refused line 2: [neutron] password refers to a name after a $, which is not an option of the image: write $$ for a $"}},
		"a value of a secret option is not shown":           {"[vault]\npin = hunter2", []string{"refused line 2: [vault] pin should be an integer"}},
		"sections that nova makes of its devices are known": {"[mdev_nvidia-35]\nmdev_class = CUSTOM_X", nil},
		"a section that the text names is known":            {"[neutron]\nauth_section = mine\n[mine]\nauth_url = http://k", nil},
		"sections of privsep have its options":              {"[nova_sys_admin]\nthread_pool_size = 0", []string{`refused line 2: [nova_sys_admin] thread_pool_size is "0", but should be an integer of at least 1`}},
		"options of plugins of keystoneauth are known":      {"[keystone_authtoken]\nauth_url = http://k\npassword = p", nil},
		"a choice that is None is none of a text":           {"[vnc]\ntls_min_version = None", []string{`refused line 2: [vnc] tls_min_version is "None", but should be one of "1.2"`}},
		"verdicts are in the order of lines": {"[DEFAULT]\ndebug = x\n[libvirt]\nvirt_type = y\n[DEFAULT]\nreserved_host_memory_mb = z",
			[]string{`refused line 2: [DEFAULT] debug is "x", but should be true or false`, `refused line 4: [libvirt] virt_type is "y", but should be one of "kvm", "qemu"`,
				`refused line 6: [DEFAULT] reserved_host_memory_mb is "z", but should be an integer of at least 0`}},
		"a long value is cut": {"[DEFAULT]\ndebug = " + strings.Repeat("x", 70), []string{`refused line 2: [DEFAULT] debug is "` + strings.Repeat("x", 60) + `…", but should be true or false`}},
	}
	known := known(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shown(known.Check(parsed(t, tt.text)))); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckSecret(t *testing.T) {
	text := "[DEFAULT]\ndebug = hunter2\nhunter3 = x\nmy_ip = $hunter4\nlibvirt_type = kvm"
	want := []string{
		"refused line 2: [DEFAULT] debug should be true or false",
		"line 3: the image does not know this option and ignores it",
		"refused line 4: [DEFAULT] my_ip refers to a name after a $, which is not an option of the image: write $$ for a $",
		"line 5: [DEFAULT] libvirt_type is deprecated: write [libvirt] virt_type",
	}
	if diff := cmp.Diff(want, shown(known(t).CheckSecret(parsed(t, text)))); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestTextsAreJudgedAsTheyAreReadTogether(t *testing.T) {
	const wrong = `line 2: [DEFAULT] reserved_host_memory_mb is "lots", but should be an integer of at least 0`
	tests := map[string]struct {
		texts []string
		want  [][]string
	}{
		"a value that a later text overrides is a warning": {[]string{"[DEFAULT]\nreserved_host_memory_mb = lots", "[DEFAULT]\nreserved_host_memory_mb = 4096"},
			[][]string{{wrong + " (a later text overrides it)"}, nil}},
		"a value that overrides another one is refused": {[]string{"[DEFAULT]\nreserved_host_memory_mb = 4096", "[DEFAULT]\nreserved_host_memory_mb = lots"},
			[][]string{nil, {"refused " + wrong}}},
		"a text that sets something else overrides nothing": {[]string{"[DEFAULT]\nreserved_host_memory_mb = lots", "[DEFAULT]\ndebug = true"}, [][]string{{"refused " + wrong}, nil}},
		"another spelling of the section overrides": {[]string{"[LibVirt]\nnum_pcie_ports = x", "[libvirt]\nnum_pcie_ports = 1"},
			[][]string{{`line 2: [LibVirt] num_pcie_ports is "x", but should be an integer from 0 to 28 (a later text overrides it)`}, nil}},
		"a former name overrides": {[]string{"[libvirt]\nnum_volume_scan_tries = x", "[libvirt]\nnum_iscsi_scan_tries = 1"},
			[][]string{{`line 2: [libvirt] num_volume_scan_tries is "x", but should be an integer (a later text overrides it)`},
				{"line 2: [libvirt] num_iscsi_scan_tries is deprecated: write [libvirt] num_volume_scan_tries"}}},
		"nothing overrides a multi-valued option":    {[]string{"[cache]\ntries = x", "[cache]\ntries = 1"}, [][]string{{`refused line 2: [cache] tries is "x", but should be an integer`}, nil}},
		"a section that another text names is known": {[]string{"[mine]\nauth_url = http://k", "[neutron]\nauth_section = mine"}, [][]string{nil, nil}},
	}
	known := known(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var parts []catalogue.Part
			for _, text := range tt.texts {
				parts = append(parts, catalogue.Part{Config: parsed(t, text)})
			}
			var got [][]string
			for _, verdicts := range known.CheckParts(parts...) {
				got = append(got, shown(verdicts))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATextThatIsTooLargeIsNotJudged(t *testing.T) {
	for name, text := range map[string]string{
		"with options":  "[DEFAULT]\n" + lines("x%d = 1\n", 6000),
		"with sections": lines("[s%d]\nx = 1\n", 501),
	} {
		t.Run(name, func(t *testing.T) {
			if got := shown(known(t).Check(parsed(t, text))); len(got) != 1 || !strings.Contains(got[0], "is not compared") {
				t.Errorf("%d verdicts", len(got))
			}
		})
	}
}

func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"what is no JSON":                 "Traceback (most recent call last):",
		"nothing":                         "",
		"a list of no option":             `{"options": {"DEFAULT": {"opts": []}}}`,
		"more options than any image has": `{"options": {"DEFAULT": {"opts": [` + strings.Repeat(`{"dest": "x"},`, 20000) + `{"dest": "x"}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := catalogue.Parse(strings.NewReader(text)); err == nil {
				t.Error("there is no error")
			}
		})
	}
}

func TestDecodeRefusesWhatOthersWrite(t *testing.T) {
	for _, data := range []string{"", "text", "\x1f\x8b"} {
		if _, err := catalogue.Decode([]byte(data)); err == nil {
			t.Errorf("%q is no error", data)
		}
	}
}

func parsed(t testing.TB, text string) *oslo.Config {
	t.Helper()
	config, err := oslo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func shown(verdicts []catalogue.Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		line := v.String()
		if v.Refused {
			line = "refused " + line
		}
		lines = append(lines, line)
	}
	return lines
}
