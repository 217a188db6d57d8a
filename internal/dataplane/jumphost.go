package dataplane

import (
	"context"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
)

// JumpKeyDigest returns a digest of the key with which ssh logs in to a jump host; empty
// without one. The error is that of inputs.Reader.SecretKey.
func JumpKeyDigest(ctx context.Context, from *inputs.Reader, namespace string, jump *common.JumpHost) (string, error) {
	if jump == nil {
		return "", nil
	}
	key, err := from.SecretKey(ctx, namespace, jump.SSHPrivateKeySecret, SSHKeyKey)
	if err != nil {
		return "", err
	}
	return inputs.Digest(map[string][]byte{SSHKeyKey: key}), nil
}

// JumpInputs returns the Secret of a jump host as indexes of inputs have it, nothing
// without one.
func JumpInputs(jump *common.JumpHost) []string {
	if jump == nil {
		return nil
	}
	return []string{"Secret/" + jump.SSHPrivateKeySecret}
}
