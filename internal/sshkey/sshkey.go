// Package sshkey makes keys of ssh, of servers and of users.
package sshkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// New returns a new private key in the format of OpenSSH, and its public key without a comment.
func New() (private, public string, err error) {
	_, generated, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("generating a key of ssh: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(generated, "")
	if err != nil {
		return "", "", fmt.Errorf("writing a key of ssh: %w", err)
	}
	signer, err := ssh.NewSignerFromSigner(generated)
	if err != nil {
		return "", "", fmt.Errorf("writing a public key of ssh: %w", err)
	}
	return string(pem.EncodeToMemory(block)), Public(signer.PublicKey()), nil
}

// Public returns a public key as a line of authorized_keys or known_hosts has it.
func Public(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
