package options

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

func TestOnlyTheProxyOfACellOpensConsoles(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the image of nova has to be loaded; -short skips that")
	case os.Geteuid() != 0:
		t.Fatal("the test needs root: it runs a container of the image of nova; -short skips it")
	}
	for image := range releases {
		t.Run(image, func(t *testing.T) { testConsoles(t, image) })
	}
}

func testConsoles(t *testing.T, image string) {
	root := envtest.File()
	ours, theirs := newAuthority(t), newAuthority(t)
	host := certificates.Compute{ID: "uid-0", Name: "edpm-compute-0", Address: netip.MustParseAddr("192.0.2.10")}
	other := certificates.Compute{ID: "uid-1", Name: "edpm-compute-1", Address: netip.MustParseAddr("192.0.2.11")}
	proxy := texts(t)(ours.ConsoleProxy("uid", time.Now()))
	trusting := func(files map[string]string) map[string]string { // the proxy's authorities
		files = maps.Clone(files)
		files[certificates.ConsoleTrustedFile] = proxy[certificates.ConsoleTrustedFile]
		return files
	}
	clients := map[string]map[string]string{
		"the proxy": proxy, "the proxy of another cell": trusting(texts(t)(theirs.ConsoleProxy("uid", time.Now()))), "another host": trusting(texts(t)(ours.ConsoleHost(other))),
	}
	config, err := nova.Config{Owner: "NovaCell cell1", ConsoleDir: "/etc/nova/nova.conf.d"}.Program("nova-novncproxy")
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range clients {
		files["program.ini"] = config
	}
	of := texts(t)(ours.ConsoleHost(host))
	server := map[string]string{ // as the role edpm_migration names them
		"ca-cert.pem": of[certificates.ConsoleTrustedFile], "server-cert.pem": of[certificates.ConsoleCertificateFile], "server-key.pem": of[certificates.ConsoleKeyFile],
	}
	in, err := json.Marshal(map[string]any{"server": server, "clients": clients})
	if err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	var got map[string]string
	if err := json.Unmarshal(inImage(t, root, image, bytes.NewBuffer(in), "python3", "-W", "ignore", "/compare/consoles.py"), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"the proxy": "VENCRYPT opened a screen of 24 bytes", "the proxy of another cell": "refused", "another host": "refused"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func newAuthority(t *testing.T) *certificates.Authority {
	t.Helper()
	data, err := certificates.NewAuthority("consoles", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificates.Parse(data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// texts returns files as texts.
func texts(t *testing.T) func(map[string][]byte, error) map[string]string {
	return func(files map[string][]byte, err error) map[string]string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]string{}
		for name, content := range files {
			read[name] = string(content)
		}
		return read
	}
}
