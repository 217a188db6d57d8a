package options

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

func TestOnlyLibvirtOfACellConnectsToLibvirt(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the image of libvirt has to be loaded; -short skips that")
	case os.Geteuid() != 0:
		t.Fatal("the test needs root: it runs a container of the image of libvirt; -short skips it")
	}
	for image := range releases {
		t.Run(image, func(t *testing.T) { testMigration(t, image) })
	}
}

// Two hosts of a cell, whose name is longer than X.520 has it for units. The address is where the test listens.
var (
	cell   = strings.Repeat("n", 63) + "/nova-cell1"
	server = certificates.Compute{ID: "uid-0", Name: "edpm-compute-0", Address: netip.MustParseAddr("127.0.0.1"), Cell: cell}
	client = certificates.Compute{ID: "uid-1", Name: "edpm-compute-1", Address: netip.MustParseAddr("192.0.2.11"), Cell: cell}
)

// certified are certificates of hosts by what has them.
type certified struct {
	t *testing.T
	*certificates.Authority
}

func (c certified) shared(of certificates.Compute) map[string]string {
	return texts(c.t)(c.Shared(of, time.Now()))
}

func (c certified) libvirt(of certificates.Compute) map[string]string {
	return texts(c.t)(c.Libvirt(of, time.Now()))
}

// qemu returns certificates of QEMU by the names of those of libvirt.
func (c certified) qemu(of certificates.Compute, use novav1.QEMUAuthority) map[string]string {
	files := texts(c.t)(c.QEMU(of, use, time.Now()))
	return map[string]string{
		certificates.CertificateFile: files[certificates.QEMUCertificateFile], certificates.KeyFile: files[certificates.QEMUKeyFile], certificates.TrustedFile: files[certificates.QEMUTrustedFile],
	}
}

// asQEMU are files by the names that QEMU looks for, as the role edpm_migration has them.
func asQEMU(files map[string]string) map[string]string {
	return map[string]string{
		"ca-cert.pem": files[certificates.TrustedFile], "server-cert.pem": files[certificates.CertificateFile], "server-key.pem": files[certificates.KeyFile],
		"client-cert.pem": files[certificates.CertificateFile], "client-key.pem": files[certificates.KeyFile],
	}
}

func testMigration(t *testing.T, image string) {
	root, ours := envtest.File(), certified{t, newAuthority(t)}
	trusted := ours.libvirt(server)[certificates.TrustedFile]
	clients, byNames, byAuthority := map[string]map[string]string{}, map[string]string{}, map[string]string{}
	for name, c := range ours.clients() {
		clients[name] = map[string]string{"cacert.pem": trusted, "clientcert.pem": c.files[certificates.CertificateFile], "clientkey.pem": c.files[certificates.KeyFile]}
		byNames[name], byAuthority[name] = c.byNames, c.byAuthority
	}
	pairs, ofQEMU := ours.pairs()
	const conf = "listen_tls = 1\nlisten_tcp = 0\nlisten_addr = \"127.0.0.1\"\nauth_tls = \"none\"\n" // as of the role edpm_libvirt
	in, err := json.Marshal(map[string]any{
		"confs":  map[string]string{"by names": conf + fmt.Sprintf("tls_allowed_dn_list = [%q]\n", certificates.LibvirtNames(server.Cell)), "by authority": conf},
		"server": asLibvirt(ours.libvirt(server)), "clients": clients, "qemu": pairs,
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	var got map[string]map[string]string
	if err := json.Unmarshal(inImage(t, root, image, bytes.NewBuffer(in), "python3", "/compare/migration.py"), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]string{"by names": byNames, "by authority": byAuthority, "qemu": ofQEMU}, got); diff != "" {
		t.Error(diff)
	}
}

const connected, refused = "connected", "refused"

// certificate with which something connects to libvirt, and what becomes of it where libvirt looks at names,
// and where it looks at the authority only.
type certificate struct {
	files                map[string]string
	byNames, byAuthority string
}

func (c certified) clients() map[string]certificate {
	elsewhere := client
	elsewhere.Cell = "openstack/cell2"
	return map[string]certificate{
		"libvirt of another host":            {c.libvirt(client), connected, connected},
		"QEMU of another host":               {c.qemu(client, novav1.QEMUAuthorityOnly), refused, refused},
		"QEMU, before its authority signs":   {c.qemu(client, novav1.QEMUAuthorityTrusted), refused, connected},
		"a certificate of both from before":  {c.shared(client), refused, connected},
		"libvirt of another cell":            {c.libvirt(elsewhere), refused, connected},
		"libvirt of an authority of another": {certified{c.t, newAuthority(c.t)}.libvirt(client), refused, refused},
	}
}

// pairs are certificates of QEMU on two hosts, which come to the uses of its authority one after the other.
func (c certified) pairs() (pairs map[string]map[string]map[string]string, want map[string]string) {
	uses := []novav1.QEMUAuthority{"", novav1.QEMUAuthorityTrusted, novav1.QEMUAuthoritySigning, novav1.QEMUAuthorityOnly}
	files := func(of certificates.Compute, use novav1.QEMUAuthority) map[string]string {
		if use == "" {
			return asQEMU(c.shared(of))
		}
		return asQEMU(c.qemu(of, use))
	}
	pairs, want = map[string]map[string]map[string]string{}, map[string]string{}
	for i, from := range uses {
		for j, to := range uses {
			if name := fmt.Sprintf("from %q to %q", from, to); i-j <= 1 && j-i <= 1 {
				pairs[name], want[name] = map[string]map[string]string{"client": files(client, from), "server": files(server, to)}, connected
			}
		}
	}
	pairs["from before to the end"], want["from before to the end"] = map[string]map[string]string{"client": files(client, ""), "server": files(server, novav1.QEMUAuthorityOnly)}, refused
	return pairs, want
}

func asLibvirt(files map[string]string) map[string]string {
	return map[string]string{
		"CA/cacert.pem": files[certificates.TrustedFile], "libvirt/servercert.pem": files[certificates.CertificateFile], "libvirt/private/serverkey.pem": files[certificates.KeyFile],
	}
}
