package metal

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// NewHostKey generates the key of an SSH server.
func NewHostKey() (HostKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return HostKey{}, fmt.Errorf("generating a host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return HostKey{}, fmt.Errorf("writing a host key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return HostKey{}, fmt.Errorf("writing a public host key: %w", err)
	}
	return HostKey{Private: string(pem.EncodeToMemory(block)), Public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}, nil
}
