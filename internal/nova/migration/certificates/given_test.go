package certificates

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// given is what people may give for libvirt on a host, as cert-manager makes it.
func given(t *testing.T, c Compute, from time.Time) map[string][]byte {
	t.Helper()
	return filesOfLibvirt(t, parsed(t, newSecret(t, from), from), c, from)
}

func TestAGivenCertificateIsUsedAsItIs(t *testing.T) {
	data := given(t, host, now)
	data["keystore.jks"] = []byte("x") // cert-manager adds others if asked
	g, err := ParseGiven(data, host, now)
	if err != nil {
		t.Fatal(err)
	}
	delete(data, "keystore.jks")
	if diff := cmp.Diff(data, g.Files()); diff != "" {
		t.Error(diff)
	}
	if left := g.NotAfter().Sub(g.EndsSoon()); left != g.NotAfter().Sub(g.leaf.NotBefore)/5 {
		t.Errorf("it is said to end %s before it does", left)
	}
}

func TestAGivenCertificateThatCannotBeUsed(t *testing.T) {
	good, other := given(t, host, now), given(t, host, now)
	with := func(changes map[string][]byte) map[string][]byte {
		data := maps.Clone(good)
		maps.Copy(data, changes)
		return data
	}
	consoles := consolesOf(t, parsed(t, newSecret(t, now), now), host)
	for name, c := range map[string]struct {
		data map[string][]byte
		at   time.Time
		want string
	}{
		"nothing":                          {nil, now, "the keys tls.crt and tls.key have no certificate and private key"},
		"no certificate":                   {with(map[string][]byte{"tls.crt": []byte("x")}), now, "the keys tls.crt and tls.key have no certificate and private key"},
		"the key of another one":           {with(map[string][]byte{"tls.key": other["tls.key"]}), now, "that belong together"},
		"no authorities":                   {with(map[string][]byte{"ca.crt": nil}), now, "key ca.crt has no certificate in PEM format"},
		"other authorities":                {with(map[string][]byte{"ca.crt": other["ca.crt"]}), now, "none of the authorities in ca.crt has signed its certificate itself"},
		"the address of another host":      {given(t, peer, now), now, "is not for 192.0.2.10, where other computes reach the host"},
		"a certificate for servers only":   {map[string][]byte{"tls.crt": consoles[ConsoleCertificateFile], "tls.key": consoles[ConsoleKeyFile], "ca.crt": consoles[ConsoleTrustedFile]}, now, "is not for client auth (usages)"},
		"a certificate that has ended":     {good, now.Add(2 * life), "its certificate is valid from"},
		"a certificate that has not begun": {good, now.Add(-2 * life), "its certificate is valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseGiven(c.data, host, c.at)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "BEGIN") {
				t.Errorf("it quotes the Secret: %v", err)
			}
		})
	}
}
