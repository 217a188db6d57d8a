package metal

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"
)

// UserData is what cloud-init makes of a machine at its first boot.
type UserData struct {
	// HostName of the machine; the part before the first dot is its short name.
	HostName string
	// Domain is appended to a HostName without a dot; it can be empty.
	Domain string
	// User that Ansible logs in as, with AuthorizedKey.
	User, AuthorizedKey string
	// HostKey of the SSH server.
	HostKey HostKey
	// CABundle has certificates as PEM that the machine trusts; it can be empty.
	CABundle []byte
	// Additions are the deployer's own user data: cloud-config or a script; they
	// can be empty.
	Additions []byte
}

// HostKey is the key of an SSH server.
type HostKey struct {
	// Private as OpenSSH writes it, and Public as in ssh_host_ed25519_key.pub.
	Private, Public string
}

// cloudConfig is the first line by which cloud-init knows its own format.
const cloudConfig = "#cloud-config\n"

// boundary between the parts: always the same, so that the same inputs are the same text.
const boundary = "==edpm-operators-user-data=="

// merging says how cloud-init merges this part into the deployer's, which comes
// first: lists are appended, mappings are merged, and what both have stays the
// deployer's. What must not be the deployer's is refused by [CheckAdditions].
// https://cloudinit.readthedocs.io/en/latest/reference/merging.html
var merging = []map[string]any{
	{"name": "list", "settings": []string{"append"}},
	{"name": "dict", "settings": []string{"no_replace", "recurse_list"}},
}

// Render returns the user data. The error says what of the additions or the CA
// bundle cannot be used.
func (u UserData) Render() ([]byte, error) {
	config, err := u.config()
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(u.Additions)) == 0 {
		return asCloudConfig(config)
	}
	if err := CheckAdditions(u.Additions); err != nil {
		return nil, err
	}
	config["merge_how"] = merging
	own, err := asCloudConfig(config)
	if err != nil {
		return nil, err
	}
	return multiPart(u.Additions, own)
}

func asCloudConfig(config map[string]any) ([]byte, error) {
	text, err := yaml.Marshal(config)
	return append([]byte(cloudConfig), text...), err
}

// multiPart is a MIME message with both texts, of which cloud-init runs scripts
// and merges cloud-configs in their order.
func multiPart(additions, own []byte) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, err
	}
	fmt.Fprintf(&body, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n", boundary)
	for _, part := range []struct {
		name string
		text []byte
	}{{"deployer", additions}, {"edpm", own}} {
		kind := "text/cloud-config"
		if bytes.HasPrefix(part.text, []byte("#!")) {
			kind = "text/x-shellscript"
		}
		p, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Type": {kind + `; charset="utf-8"`}, "Content-Disposition": {fmt.Sprintf(`attachment; filename="%s"`, part.name)},
		})
		if err != nil {
			return nil, err
		}
		if _, err := p.Write(part.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return body.Bytes(), err
}

func (u UserData) config() (map[string]any, error) {
	authorities, err := certificates(u.CABundle)
	if err != nil {
		return nil, err
	}
	config := map[string]any{
		"users":            []any{u.account()},
		"ssh_deletekeys":   true,
		"ssh_keys":         map[string]any{"ed25519_private": u.HostKey.Private, "ed25519_public": u.HostKey.Public},
		"ssh_pwauth":       false,
		"manage_etc_hosts": true,
	}
	maps.Copy(config, hostNames(u.HostName, u.Domain))
	if u.User == "root" {
		config["disable_root"] = false
	}
	if len(authorities) > 0 {
		config["ca_certs"] = map[string]any{"trusted": authorities}
	}
	return config, nil
}

func (u UserData) account() map[string]any {
	account := map[string]any{"name": u.User, "ssh_authorized_keys": []string{u.AuthorizedKey}}
	if u.User != "root" {
		account["sudo"], account["shell"], account["lock_passwd"] = "ALL=(ALL) NOPASSWD:ALL", "/bin/bash", true
	}
	return account
}

func hostNames(host, domain string) map[string]any {
	short, own, dotted := strings.Cut(host, ".")
	if dotted {
		domain = own
	}
	if domain == "" {
		return map[string]any{"hostname": short}
	}
	return map[string]any{"hostname": short, "fqdn": short + "." + domain}
}

// certificates are the certificates of a bundle, each as PEM.
func certificates(bundle []byte) ([]string, error) {
	var all []string
	for rest := bytes.TrimSpace(bundle); len(rest) > 0; {
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("the CA bundle has text after certificate %d that is not PEM", len(all))
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the CA bundle has a block %q: give certificates only", block.Type)
		}
		all, rest = append(all, string(pem.EncodeToMemory(block))), bytes.TrimSpace(after)
	}
	return all, nil
}

// reserved are the keys of a cloud-config that are not the deployer's, with what to
// do instead.
var reserved = map[string]string{
	"ssh_keys":             "the key of the machine is generated, so that it is trusted from the first connection",
	"ssh_deletekeys":       "the key of the machine is generated, so that it is trusted from the first connection",
	"ssh_genkeytypes":      "the key of the machine is generated, so that it is trusted from the first connection",
	"hostname":             "set spec.hostName of the node",
	"fqdn":                 "set spec.hostName of the node, or baremetalSetTemplate.domainName",
	"preserve_hostname":    "the machine has the name of its node",
	"manage_etc_hosts":     "the machine resolves its own name",
	"network":              "set baremetalSetTemplate.networkData",
	"merge_how":            "lists are appended and mappings merged",
	"merge_type":           "lists are appended and mappings merged",
	"disable_root":         "set ansibleUser: root to log in as root",
	"ssh_pwauth":           "logging in is by key",
	"ssh_quiet_keygen":     "the key of the machine is generated",
	"ssh_publish_hostkeys": "the key of the machine is known already",
}

// CheckAdditions returns an error if cloud-init cannot merge a deployer's user data
// with that of the node, or would change what the node relies on. It has no word of
// the text, which may be secret, but names of keys.
func CheckAdditions(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("#!")):
		return nil
	case !bytes.HasPrefix(text, []byte("#cloud-config\n")) && !bytes.HasPrefix(text, []byte("#cloud-config\r\n")):
		return fmt.Errorf("user data must begin with a line #cloud-config, or with #! for a script")
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("user data is not a YAML mapping: correct it (cloud-init schema --config-file checks it)")
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if why, found := reserved[key]; found {
			return fmt.Errorf("user data sets %s: remove it, %s", key, why)
		}
	}
	for _, key := range []string{"users"} {
		if _, isList := config[key].([]any); config[key] != nil && !isList {
			return fmt.Errorf("user data sets %s to something else than a list: make it a list, so that it can be merged", key)
		}
	}
	return nil
}

// AuthorizedKey returns the public half of a private key, as in authorized_keys.
// The error has nothing of the key.
func AuthorizedKey(private []byte) (string, error) {
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("the private key cannot be read: give an unencrypted key as ssh-keygen makes it")
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}
