package validate

import (
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// HostKey checks the public key of a host, as it is in /etc/ssh/ssh_host_*_key.pub,
// and returns it without comment; empty for none.
func HostKey(path *field.Path, value string) (string, *field.Error) {
	if value == "" {
		return "", nil
	}
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(value))
	if err != nil || len(options) > 0 || strings.TrimSpace(string(rest)) != "" {
		return "", field.Invalid(path, value,
			"must be one public key of the host, for example ssh-ed25519 AAAAC3Nza...: copy it from /etc/ssh/ssh_host_ed25519_key.pub on the host")
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}
