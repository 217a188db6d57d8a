// Package login has the key by which nova copies disks of guests between the computes of a cell,
// and what their hosts know of one another for that. It is pure: controllers store the Secret of
// a cell, and nothing else.
package login

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/internal/sshkey"
)

const (
	// Port of the login on hosts. Their own sshd has another one.
	Port = 2022
	// PreviousKey has, in the Secret of a cell, the private key before the present one, as long
	// as there are hosts that have no other. It is also the name of a file.
	PreviousKey = "previous"
	// RotationKey has the token of the last rotation.
	RotationKey = "rotation"
	// command is all that the login runs. The role edpm_migration writes it.
	command = "/etc/ssh/copy_disks"
)

// Files of a compute, by the names that the role edpm_migration knows.
const (
	AuthorizedKeysFile = "authorized_keys"
	KnownHostsFile     = "known_hosts"
)

// Host of a compute that others copy disks to.
type Host struct {
	// Address that others connect to and from which it connects to others.
	Address string
	// Key that it shows.
	Key string
}

// Keys of a cell.
type Keys struct {
	data              map[string][]byte
	present, previous ssh.PublicKey
}

// Next returns the Secret of a cell that follows from the present one: a new one if there is no
// key in it, another key for another token, and without the previous key once every host has
// the present one, of which isEverywhere gets the fingerprint. A rotation waits for the one before.
func Next(data map[string][]byte, token string, isEverywhere func(string) bool) (map[string][]byte, error) {
	keys, err := Parse(data)
	switch {
	case err != nil:
		return generate(nil, token)
	case keys.previous != nil && isEverywhere(keys.Fingerprint()):
		next := maps.Clone(data)
		delete(next, PreviousKey)
		return next, nil
	case keys.previous == nil && token != "" && token != string(data[RotationKey]):
		return generate(data[corev1.SSHAuthPrivateKey], token)
	}
	return data, nil
}

func generate(previous []byte, token string) (map[string][]byte, error) {
	private, _, err := sshkey.New()
	data := map[string][]byte{corev1.SSHAuthPrivateKey: []byte(private)}
	if previous != nil {
		data[PreviousKey] = previous
	}
	if token != "" {
		data[RotationKey] = []byte(token)
	}
	return data, err
}

// Parse reads the Secret of a cell. Errors quote none of it.
func Parse(data map[string][]byte) (*Keys, error) {
	present, err := ssh.ParsePrivateKey(data[corev1.SSHAuthPrivateKey])
	if err != nil {
		return nil, fmt.Errorf("key %s has no private key of ssh", corev1.SSHAuthPrivateKey)
	}
	keys := &Keys{data: data, present: present.PublicKey()}
	if previous, err := ssh.ParsePrivateKey(data[PreviousKey]); err == nil {
		keys.previous = previous.PublicKey()
	}
	return keys, nil
}

// Fingerprint of the present key.
func (k *Keys) Fingerprint() string { return ssh.FingerprintSHA256(k.present) }

// Previous is the fingerprint of the key before, which is still accepted; empty if none is.
func (k *Keys) Previous() string {
	if k.previous == nil {
		return ""
	}
	return ssh.FingerprintSHA256(k.previous)
}

// Public returns the public files of a compute that lets in the hosts and connects to them.
func (k *Keys) Public(hosts []Host) map[string][]byte {
	return map[string][]byte{AuthorizedKeysFile: k.authorizedKeys(hosts), KnownHostsFile: knownHosts(hosts)}
}

// Private returns the files with the private keys.
func (k *Keys) Private() map[string][]byte {
	files := map[string][]byte{corev1.SSHAuthPrivateKey: k.data[corev1.SSHAuthPrivateKey]}
	if k.previous != nil {
		files[PreviousKey] = k.data[PreviousKey]
	}
	return files
}

// authorizedKeys lets in who has one of the keys, from the hosts, for one command.
func (k *Keys) authorizedKeys(hosts []Host) []byte {
	var from []string
	for _, host := range hosts {
		from = append(from, host.Address)
	}
	slices.Sort(from)
	var text strings.Builder
	for _, key := range []ssh.PublicKey{k.present, k.previous} {
		if key != nil && len(from) > 0 {
			fmt.Fprintf(&text, "restrict,command=%q,from=%q %s\n", command, strings.Join(slices.Compact(from), ","), sshkey.Public(key))
		}
	}
	return []byte(text.String())
}

// knownHosts has the hosts by the addresses that nova connects to.
func knownHosts(hosts []Host) []byte {
	var lines []string
	for _, host := range hosts {
		lines = append(lines, fmt.Sprintf("[%s]:%d %s\n", host.Address, Port, host.Key))
	}
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), ""))
}
