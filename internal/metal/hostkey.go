package metal

import "github.com/edpm-operators/edpm-operators/internal/sshkey"

// NewHostKey generates the key of an SSH server.
func NewHostKey() (HostKey, error) {
	private, public, err := sshkey.New()
	return HostKey{Private: private, Public: public}, err
}
