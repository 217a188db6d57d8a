package metal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"math/big"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it:\n%s", path, diff)
	}
}

// answer is what cloud-init makes of user data and network data.
type answer struct {
	Config   map[string]any
	Scripts  []string
	Problems string
	Network  struct{ Interfaces string }
}

// askCloudInit asks the real cloud-init.
func askCloudInit(t *testing.T, user, network []byte) answer {
	t.Helper()
	dir := needs.CloudInit(t)
	asked, err := json.Marshal(map[string]any{
		"user_data": string(user), "network_data": string(network),
		"macs": map[string]string{"52:54:00:00:00:01": "eno1", "52:54:00:00:00:02": "eno2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-B", filepath.Join("testdata", "ask_cloud_init.py"))
	cmd.Env, cmd.Stdin = append(os.Environ(), "PYTHONPATH="+dir), bytes.NewReader(asked)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("cloud-init: %v\n%s", err, stderr.String())
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func simple() UserData {
	return UserData{
		HostName: "edpm-compute-0", Domain: "example.org", User: "cloud-admin", AuthorizedKey: "ssh-ed25519 AAAA",
		HostKey: HostKey{Private: "-----BEGIN OPENSSH PRIVATE KEY-----\nprivate\n-----END OPENSSH PRIVATE KEY-----\n", Public: "ssh-ed25519 BBBB"},
	}
}

// authority returns a certificate as PEM.
func authority(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

const additions = `#cloud-config
users:
- name: operator
  ssh_authorized_keys: [ssh-ed25519 CCCC]
runcmd:
- [touch, /etc/ours]
ca_certs:
  remove_defaults: true
`

func TestUserDataIsWhatItWas(t *testing.T) {
	for name, change := range map[string]func(*UserData){
		"user-data.yaml":        func(*UserData) {},
		"user-data-merged.mime": func(u *UserData) { u.Additions = []byte(additions) },
		"user-data-root.yaml":   func(u *UserData) { u.User, u.HostName = "root", "a.b.c" },
	} {
		u := simple()
		change(&u)
		text, err := u.Render()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, text)
	}
}

func TestCloudInitTakesTheUserData(t *testing.T) {
	certificate := authority(t)
	for name, c := range map[string]struct {
		change func(*UserData)
		want   map[string]any // of the keys that it has
		users  []string
		script string
	}{
		"alone":                {func(*UserData) {}, map[string]any{"hostname": "edpm-compute-0", "fqdn": "edpm-compute-0.example.org", "ssh_deletekeys": true}, []string{"cloud-admin"}, ""},
		"without a domain":     {func(u *UserData) { u.Domain = "" }, map[string]any{"hostname": "edpm-compute-0", "fqdn": nil}, []string{"cloud-admin"}, ""},
		"a host name with one": {func(u *UserData) { u.HostName = "n1.other.org" }, map[string]any{"hostname": "n1", "fqdn": "n1.other.org"}, []string{"cloud-admin"}, ""},
		"as root":              {func(u *UserData) { u.User = "root" }, map[string]any{"disable_root": false}, []string{"root"}, ""},
		"with certificates":    {func(u *UserData) { u.CABundle = []byte(certificate + "\n" + certificate) }, map[string]any{"ca_certs": map[string]any{"trusted": []any{certificate, certificate}}}, []string{"cloud-admin"}, ""},
		"with a script":        {func(u *UserData) { u.Additions = []byte("#!/bin/sh\ntrue\n") }, nil, []string{"cloud-admin"}, "#!/bin/sh\ntrue\n"},
		"with additions": {
			func(u *UserData) { u.Additions, u.CABundle = []byte(additions), []byte(certificate) },
			map[string]any{"runcmd": []any{[]any{"touch", "/etc/ours"}}, "ca_certs": map[string]any{"remove_defaults": true, "trusted": []any{certificate}}, "hostname": "edpm-compute-0"},
			[]string{"operator", "cloud-admin"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := simple()
			c.change(&u)
			text, err := u.Render()
			if err != nil {
				t.Fatal(err)
			}
			got := askCloudInit(t, text, nil)
			if got.Problems != "" {
				t.Errorf("cloud-init's schema refuses it: %s", got.Problems)
			}
			for key, want := range c.want {
				if diff := cmp.Diff(want, got.Config[key]); diff != "" {
					t.Errorf("%s differs (-want +got):\n%s", key, diff)
				}
			}
			keys := map[string]any{"ed25519_private": u.HostKey.Private, "ed25519_public": u.HostKey.Public}
			if diff := cmp.Diff(any(keys), got.Config["ssh_keys"]); diff != "" {
				t.Errorf("the host key differs (-want +got):\n%s", diff)
			}
			var users []string
			for _, user := range got.Config["users"].([]any) {
				users = append(users, user.(map[string]any)["name"].(string))
			}
			if diff := cmp.Diff(c.users, users); diff != "" {
				t.Errorf("the users differ (-want +got):\n%s", diff)
			}
			if strings.Join(got.Scripts, "") != c.script {
				t.Errorf("the scripts are %q; want %q", got.Scripts, c.script)
			}
		})
	}
}

func TestAdditionsThatWouldChangeWhatTheNodeReliesOnAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"#cloud-config\nssh_keys: {rsa_private: x}":      "sets ssh_keys: remove it",
		"#cloud-config\nssh_deletekeys: false":           "sets ssh_deletekeys",
		"#cloud-config\nhostname: x":                     "set spec.hostName of the node",
		"#cloud-config\nmerge_how: dict(replace)":        "sets merge_how",
		"#cloud-config\nusers: {a: b}":                   "users to something else than a list",
		"#cloud-config\n- a":                             "not a YAML mapping",
		"## template: jinja\n#cloud-config\nhostname: x": "must begin with a line #cloud-config",
		"#include\nhttp://x":                             "must begin with a line #cloud-config",
		"Content-Type: multipart/mixed; boundary=x\n":    "must begin with a line #cloud-config",
		"#cloud-config-archive\n- a":                     "must begin with a line #cloud-config",
	} {
		u := simple()
		u.Additions = []byte(text)
		if _, err := u.Render(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("of %q it says %v; want %q", text, err, says)
		}
	}
}

func TestErrorsOfAdditionsHaveNothingOfTheText(t *testing.T) {
	for _, text := range []string{"#cloud-config\nchpasswd: {list: 'root:s3cret", "#cloud-config\nusers: s3cret", "s3cret"} {
		if err := CheckAdditions([]byte(text)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("of %q it says %v", text, err)
		}
	}
}

func TestACABundleHasCertificatesOnly(t *testing.T) {
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for _, bundle := range []string{"text", authority(t) + "text", key} {
		u := simple()
		u.CABundle = []byte(bundle)
		if _, err := u.Render(); err == nil || !strings.Contains(err.Error(), "the CA bundle has") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestAGeneratedHostKeyIsOne(t *testing.T) {
	key, err := NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := AuthorizedKey([]byte(key.Private))
	if err != nil || public != key.Public {
		t.Errorf("the public half of the private key is %q, %v; want %q", public, err, key.Public)
	}
	if parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.Public)); err != nil || parsed.Type() != ssh.KeyAlgoED25519 {
		t.Errorf("the public key is %v, %v; want an ed25519 key", parsed, err)
	}
	if other, err := NewHostKey(); err != nil || other == key {
		t.Errorf("two keys are the same: %v", err)
	}
	if _, err := AuthorizedKey([]byte("s3cret")); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error of what is no key is %v", err)
	}
}

func address(text string) netip.Addr { return netip.MustParseAddr(text) }

func TestNetworkData(t *testing.T) {
	second := func(h *metal3v1.BareMetalHost) {
		h.Status.Hardware.NICs = append(h.Status.Hardware.NICs, metal3v1.NIC{Name: "eno2", MAC: "52:54:00:00:00:02"})
	}
	for name, c := range map[string]struct {
		network Network
		host    metal3v1.BareMetalHost
		// says are parts of what cloud-init writes to /etc/network/interfaces.
		says []string
	}{
		"network-dhcp.json": {Network{}, machine("h"), []string{"iface eno1 inet dhcp"}},
		"network-static.json": {
			Network{Interface: "eno2", Address: address("192.168.122.100"), Gateway: "192.168.122.1", DNS: []string{"192.168.122.53"}, Search: []string{"example.org"}}, machine("h", second),
			[]string{"iface eno2 inet static", "address 192.168.122.100/24", "gw 192.168.122.1", "dns-nameservers 192.168.122.53", "dns-search example.org"},
		},
		"network-vlan.json": {
			Network{VLAN: 20, Address: address("172.17.0.5"), Netmask: "255.255.0.0"}, machine("h"),
			[]string{"iface eno1 inet manual", "iface eno1.20 inet static", "address 172.17.0.5/16", "vlan_id 20"},
		},
		"network-ipv6.json": {
			Network{Interface: "52:54:00:00:00:01", Address: address("fd00::5"), Gateway: "fd00::1"}, machine("h"),
			[]string{"iface eno1 inet6 static", "address fd00::5/64", "gw fd00::1"},
		},
		"network-bond.json": {
			Network{
				Bond: &Bond{Interfaces: []string{"eno1", "eno2"}, Mode: "802.3ad"}, VLAN: 20, Address: address("172.17.0.5"), Gateway: "172.17.0.1",
				Others: []Further{{Name: "storage", VLAN: 21, Address: address("172.18.0.5"), Netmask: "23"}, {Name: "tenant"}},
			}, machine("h", second),
			[]string{
				"iface bond0 inet dhcp", "bond_mode 802.3ad", "bond_miimon 100", "iface eno1 inet manual\n    bond-master bond0", "iface eno2 inet manual\n    bond-master bond0",
				"iface bond0.20 inet static\n    address 172.17.0.5/24", "gw 172.17.0.1", "iface bond0.21 inet static\n    address 172.18.0.5/23", "vlan-raw-device bond0",
			},
		},
		"network-further.json": {
			Network{Address: address("192.168.1.5"), Others: []Further{{Name: "storage", Interface: "eno2", Address: address("fd00::5")}, {Name: "tenant", VLAN: 30}}}, machine("h", second),
			[]string{"iface eno1 inet static\n    address 192.168.1.5/24", "iface eno2 inet6 static\n    address fd00::5/64", "iface eno1.30 inet dhcp"},
		},
		"network-boot-mac.json": {
			Network{}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware, h.Spec.BootMACAddress = nil, "52:54:00:00:00:02" }),
			[]string{"iface eno2 inet dhcp"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := c.network.Render(&c.host)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, text)
			got := askCloudInit(t, nil, text).Network.Interfaces
			for _, part := range c.says {
				if !strings.Contains(got, part) {
					t.Errorf("cloud-init writes\n%s\nwant %q in it", got, part)
				}
			}
		})
	}
}

func TestNetworkDataThatCannotBeMadeSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		network Network
		host    metal3v1.BareMetalHost
		says    string
	}{
		"no such NIC":             {Network{Interface: "eno9"}, machine("h"), "BareMetalHost h has no NIC eno9 (it has eno1)"},
		"a NIC of the bond":       {Network{Bond: &Bond{Interfaces: []string{"eno1"}}, Others: []Further{{Name: "storage", Interface: "eno1"}}}, machine("h"), "network storage: NIC eno1 of BareMetalHost h is part of baremetalSetTemplate.ctlplaneBond"},
		"a NIC twice in a bond":   {Network{Bond: &Bond{Interfaces: []string{"eno1", "52:54:00:00:00:01"}}}, machine("h"), "name each NIC of BareMetalHost h once"},
		"a MAC that is none":      {Network{Interface: "eno1"}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware.NICs[0].MAC = "\x1b[2J" }), "has no NIC eno1"},
		"names with controls":     {Network{Interface: "eno9"}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware.NICs[0].Name = "\x1b[2Jeno1" }), "(it has  [2Jeno1)"},
		"a mask of a further one": {Network{Others: []Further{{Name: "storage", Address: address("10.0.0.1"), Netmask: "64"}}}, machine("h"), `bootNetworks[storage].netmask: "64" is not a valid netmask`},
		"no hardware":             {Network{Interface: "eno9"}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware = nil }), "no hardware data"},
		"no NIC to boot from":     {Network{}, machine("h", func(h *metal3v1.BareMetalHost) { h.Status.Hardware.NICs[0].PXE = false }), "set baremetalSetTemplate.ctlplaneInterface"},
		"a mask that is none":     {Network{Address: address("10.0.0.1"), Netmask: "255.0.255.0"}, machine("h"), `ctlplaneNetmask: "255.0.255.0" is not a valid netmask for address 10.0.0.1`},
		"a mask of IPv4 for v6":   {Network{Address: address("fd00::1"), Netmask: "255.255.255.0"}, machine("h"), "is not a valid netmask for address fd00::1"},
		"a prefix too long":       {Network{Address: address("10.0.0.1"), Netmask: "33"}, machine("h"), "is not a valid netmask"},
	} {
		if _, err := c.network.Render(&c.host); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it says %v; want %q", name, err, c.says)
		}
	}
}
