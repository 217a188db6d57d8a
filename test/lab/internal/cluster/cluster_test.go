package cluster

import (
	"archive/tar"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

func testLab(t *testing.T) *Lab {
	t.Helper()
	lab := New(Layout{Dir: t.TempDir(), PortBase: 20000}, "/bin-dir", "/images")
	if err := lab.adopt(); err != nil {
		t.Fatal(err)
	}
	if err := lab.certificates(); err != nil {
		t.Fatal(err)
	}
	return lab
}

func TestLayoutRefusesWhatItCannotWorkWith(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layout Layout
		fails  bool
	}{
		{"the default", Layout{"/var/lib/edpm-lab", 16443}, false},
		{"a relative directory", Layout{"lab", 16443}, true},
		{"a space, which iptables listings would split", Layout{"/my lab", 16443}, true},
		{"a colon, which podman volumes would split", Layout{"/my:lab", 16443}, true},
		{"privileged ports", Layout{"/lab", 443}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.layout.Validate(); (err != nil) != tc.fails {
				t.Errorf("error is %v, want one: %v", err, tc.fails)
			}
		})
	}
}

func TestALabNeverAdoptsADirectoryInUse(t *testing.T) {
	layout := Layout{Dir: t.TempDir(), PortBase: 20000}
	treasure := layout.path("kubelet")
	if err := os.WriteFile(treasure, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layout.adopt(); err == nil {
		t.Error("adopt took a directory with other things in it")
	}
	if err := New(layout, "", "").removeState(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Errorf("removeState touched a directory that is not a lab's: %v", err)
	}
}

func TestALabNeedsRoomOnItsDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	if err := requireRoom(dir, 1); err != nil {
		t.Errorf("a disk with room: %v", err)
	}
	err := requireRoom(dir, math.MaxUint64)
	if err == nil || !strings.Contains(err.Error(), "EDPM_LAB_DIR") || !strings.Contains(err.Error(), "MB free") {
		t.Errorf("error %v does not say what is missing and what to do", err)
	}
	small, large, hosts := Options{KwokNodes: 3}.room(), Options{Kubelet: true}.room(), Options{Hosts: DefaultHosts()}.room()
	if small >= large || hosts != large {
		t.Errorf("%d bytes without images and %d with them", small, large)
	}
	// The kubelet must not evict pods as soon as the lab is up.
	if config := testLab(t).kubeletComponent("").Files; !strings.Contains(fmt.Sprint(config), "nodefs.available: 200Mi") || large < 300<<20 {
		t.Errorf("%d bytes are asked for, and the kubelet evicts pods by %v", large, config)
	}
}

func TestWhatBelongsToAnotherLabIsNotTaken(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		want          []string
	}{
		{"a host of another lab", foreignHost("edpm-compute-0", "/other").Error(), []string{"edpm-compute-0", "EDPM_LAB_DIR=/other go run ./test/lab down"}},
		{"a container of nobody", foreignHost("edpm-compute-0", "").Error(), []string{"podman rm --force edpm-compute-0"}},
		{"a bridge of another lab", otherDown("edpm-lab:/other"), []string{"EDPM_LAB_DIR=/other go run ./test/lab down"}},
		{"a bridge of nobody", otherDown("nobody"), []string{"ip link del " + bridge}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, words := range tc.want {
				if !strings.Contains(tc.message, words) {
					t.Errorf("%q does not say %q", tc.message, words)
				}
			}
		})
	}
}

// Each component must read every file it is given, or the file has no effect.
func TestAnAuditIsMadeWhereItIsAskedFor(t *testing.T) {
	lab := testLab(t)
	if argv := strings.Join(lab.apiserver(Options{}).Argv, " "); strings.Contains(argv, "audit") {
		t.Errorf("nobody asked for %s", argv)
	}
	if argv := lab.apiserver(Options{Audit: true}).Argv; valueOf(argv, "--audit-log-maxsize") == "" || valueOf(argv, "--audit-log-path") == "" {
		t.Errorf("%q do not say where the log is and how large it gets", argv)
	}
}

func TestComponentsUseTheirFiles(t *testing.T) {
	lab := testLab(t)
	managers, err := lab.managers(Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubelet := lab.kubeletComponent("kubeconfig")
	for _, c := range append(managers, kubelet, lab.apiserver(Options{Audit: true})) {
		argv := strings.Join(c.Argv, " ")
		for path := range c.Files {
			if !strings.Contains(argv, path) {
				t.Errorf("%s gets %s but no argument names it", c.Name, path)
			}
		}
	}
	config := kubelet.Files[lab.path("conf", "kubelet.yaml")]
	for _, want := range []string{
		"port: 20005\n", "containerRuntimeEndpoint: unix://" + lab.Dir + "/containerd/containerd.sock\n",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("kubelet.yaml lacks %q:\n%s", want, config)
		}
	}
}

func TestTheKubeconfigKeepsItsNamespaceUntilTheClusterIsAnother(t *testing.T) {
	lab := testLab(t)
	namespace := func() string {
		config, err := clientcmd.LoadFromFile(lab.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		return config.Contexts[config.CurrentContext].Namespace
	}
	config, err := clientcmd.LoadFromFile(lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = "chosen"
	if err := clientcmd.WriteToFile(*config, lab.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	if err := lab.certificates(); err != nil || namespace() != "chosen" {
		t.Errorf("the namespace is %q after one more up (%v); want the one that was chosen", namespace(), err)
	}
	lab.PortBase++
	if err := lab.certificates(); err != nil || namespace() != "" {
		t.Errorf("the namespace is %q after the ports have changed (%v); want a new kubeconfig", namespace(), err)
	}
}

func TestANodeIsGivenUpAsSoonAsAsked(t *testing.T) {
	lab := testLab(t)
	soon := Options{NodeGrace: 16 * time.Second, EvictionGrace: 5 * time.Second}
	for _, tc := range []struct {
		flag string
		argv func(Options) []string
		// soon and usual values; a flag without the latter is left to its program.
		soon, usual string
	}{
		{"--node-monitor-grace-period", func(o Options) []string { return lab.controllerManager(o, "").Argv }, "16s", ""},
		{"--default-unreachable-toleration-seconds", func(o Options) []string { return lab.apiserver(o).Argv }, "5", ""},
		{"--default-not-ready-toleration-seconds", func(o Options) []string { return lab.apiserver(o).Argv }, "5", ""},
		// KWOK's nodes must show that they live before they are given up.
		{"--node-lease-duration-seconds", func(o Options) []string { return lab.kwokComponent(o).Argv }, "16", "40"},
	} {
		if got := valueOf(tc.argv(soon), tc.flag); got != tc.soon {
			t.Errorf("%s is %q, want %q", tc.flag, got, tc.soon)
		}
		if got := valueOf(tc.argv(Options{}), tc.flag); got != tc.usual {
			t.Errorf("by default %s is %q, want %q", tc.flag, got, tc.usual)
		}
	}
}

// valueOf returns the value of a flag, "" when it is not given.
func valueOf(argv []string, flag string) string {
	for _, arg := range argv {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

func TestContainerdKeepsToTheLabsDirectory(t *testing.T) {
	lab := testLab(t)
	for path, content := range lab.containerd().Files {
		if !strings.HasPrefix(path, lab.Dir+"/") {
			t.Errorf("%s is outside %s", path, lab.Dir)
		}
		if strings.Contains(content, "/run/containerd") || strings.Contains(content, "/var/lib/containerd") {
			t.Errorf("%s refers to the system's containerd:\n%s", path, content)
		}
	}
}

func TestTheApiserverIsOpenOnlyToPods(t *testing.T) {
	lab := testLab(t)
	for _, tc := range []struct {
		name    string
		kubelet bool
		want    string
	}{
		{"with a kubelet it serves pods", true, "--bind-address=0.0.0.0"},
		{"without one it stays on loopback", false, "--bind-address=127.0.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if argv := lab.apiserver(Options{Kubelet: tc.kubelet}).Argv; !slices.Contains(argv, tc.want) {
				t.Errorf("%q lacks %s", argv, tc.want)
			}
		})
	}
}

func TestOnlyTaggedRulesAreDeleted(t *testing.T) {
	const listing = `-P FORWARD ACCEPT
-A FORWARD -i edpmlab0 -m comment --comment "edpm-lab:/a" -j ACCEPT
-A FORWARD -i edpmlab0 -m comment --comment "edpm-lab:/a/b" -j ACCEPT
-A FORWARD -m comment --comment "netavark firewall plugin rules" -j NETAVARK_FORWARD
`
	want := [][]string{strings.Fields("-D FORWARD -i edpmlab0 -m comment --comment edpm-lab:/a -j ACCEPT")}
	if got := deletions(listing, "edpm-lab:/a"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMountsUnder(t *testing.T) {
	const table = `36 35 98:0 / /lab rw - ext4 /dev/root rw
37 35 98:0 / /lab/a rw - ext4 /dev/root rw
38 37 98:0 / /lab/a/b rw - ext4 /dev/root rw
39 35 98:0 / /laboratory rw - ext4 /dev/root rw
`
	want := []string{"/lab/a/b", "/lab/a"} // the inner one first
	if got := mountsUnder(table, "/lab"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReplacedImages(t *testing.T) {
	const listing = `REF TYPE DIGEST SIZE PLATFORMS LABELS
localhost/x:latest docker sha256:new 1 linux/amd64 -
sha256:id-new docker sha256:new 1 linux/amd64 -
sha256:id-old docker sha256:old 1 linux/amd64 -
`
	if got := replacedImages(listing); !reflect.DeepEqual(got, []string{"sha256:id-old"}) {
		t.Errorf("got %q, want only the image without a name", got)
	}
}

func TestParseHost(t *testing.T) {
	for _, tc := range []struct {
		in    string
		want  Host
		fails bool
	}{
		{"edpm-compute-2=192.168.122.110", Host{"edpm-compute-2", "192.168.122.110"}, false},
		{"edpm-compute-2", Host{}, true},
		{"=192.168.122.110", Host{}, true},
		{"elsewhere=10.0.0.1", Host{}, true},
		{"nonsense=1.2.3", Host{}, true},
	} {
		t.Run(tc.in, func(t *testing.T) {
			got, err := ParseHost(tc.in)
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("got %+v, %v; want %+v, an error: %v", got, err, tc.want, tc.fails)
			}
		})
	}
}

func TestKwokNodesAreTaintedOnlyBesideARealOne(t *testing.T) {
	if n := kwokNode(4, true); len(n.Spec.Taints) != 1 || n.Metadata.Labels["topology.kubernetes.io/zone"] != "zone-b" {
		t.Errorf("got %+v, want one taint and zone-b", n)
	}
	if n := kwokNode(4, false); len(n.Spec.Taints) != 0 {
		t.Errorf("got taints %+v, want none", n.Spec.Taints)
	}
}

func TestAnImageIsImportedOncePerContent(t *testing.T) {
	lab := testLab(t)
	first := writeArchive(t, `[{"Config":"1.json","RepoTags":["localhost/x:latest"]}]`)
	second := writeArchive(t, `[{"Config":"2.json","RepoTags":["localhost/x:latest"]}]`)
	var imports int
	count := func() error { imports++; return nil }
	for _, step := range []struct {
		name, store, archive string
		want                 int
	}{
		{"the first time", "containerd", first, 1},
		{"the same again", "containerd", first, 1},
		{"into another store", "podman", first, 2},
		{"another image of the same name", "containerd", second, 3},
		{"back to the first image", "containerd", first, 4},
	} {
		if err := lab.once(step.store, step.archive, count); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if imports != step.want {
			t.Errorf("%s: %d imports, want %d", step.name, imports, step.want)
		}
	}
}

func writeArchive(t *testing.T, manifest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, file := range []struct{ name, content string }{{"layer.tar", "layer"}, {"manifest.json", manifest}} {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(file.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The programs of OLM take no directory, but down must know them for its own.
func TestComponentsOfOLMTellWhoseTheyAre(t *testing.T) {
	lab := testLab(t)
	lab.OLM = "/olm-dir"
	for _, c := range append(lab.olmComponents(), lab.opm("/somewhere")) {
		if !slices.Contains(componentNames(), c.Name) {
			t.Errorf("down does not know %s", c.Name)
		}
		if !proc.Mentions(lab.Dir+"/", c.Name)(c.Argv) {
			t.Errorf("nothing in %q is in %s", c.Argv, lab.Dir)
		}
	}
}
