package metal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// Keys of the Secret of a node with what its machine boots with. baremetal-operator
// reads the first two by these names.
const (
	UserDataKey      = "userData"
	NetworkDataKey   = "networkData"
	HostKeyKey       = "ssh_host_ed25519_key"
	PublicHostKeyKey = "ssh_host_ed25519_key.pub"
	// MachineKey says for which machine the host key was generated.
	MachineKey = "machine"
	// InputHashKey has the hash of the plan.
	InputHashKey = "inputHash"
	// CABundleKey of the Secret that caBundleSecretName names.
	CABundleKey = "tls-ca-bundle.pem"
)

// SecretName is the name of the Secret of a node.
func SecretName(node string) string {
	return names.Fit("dataplanenode-"+node+"-metal", names.MaxObject)
}

// Plan is everything that decides what a machine boots with, but for its own host
// key, which is generated.
type Plan struct {
	Image metal3v1.Image
	User  UserData
	// Network is the network data.
	Network []byte
	// Machine that the host key is for. It is not part of the hash.
	Machine string `json:"-"`
}

// Hash of the plan, whatever its host key is.
func (p Plan) Hash() (string, error) {
	p.User.HostKey = HostKey{}
	text, err := json.Marshal(p)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), err
}

// Data of the Secret. The error says what of the user data cannot be used.
func (p Plan) Data() (map[string][]byte, error) {
	text, err := p.User.Render()
	if err != nil {
		return nil, err
	}
	hash, err := p.Hash()
	return map[string][]byte{
		UserDataKey: text, NetworkDataKey: p.Network, HostKeyKey: []byte(p.User.HostKey.Private), PublicHostKeyKey: []byte(p.User.HostKey.Public), InputHashKey: []byte(hash), MachineKey: []byte(p.Machine),
	}, err
}

// KnownKey returns the host key in the data of the Secret of a node; empty without.
func KnownKey(data map[string][]byte) HostKey {
	return HostKey{Private: string(data[HostKeyKey]), Public: string(data[PublicHostKeyKey])}
}
