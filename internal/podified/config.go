package podified

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/podified"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Snippets are the parts of a configuration that people give, in the order in
// which the service reads them after what is generated.
type Snippets struct {
	Custom  string
	Secrets string
}

// ReadSnippets checks customServiceConfig and reads customServiceConfigSecrets,
// whose values are joined in the order of the names and, within a Secret, of
// the keys. What is missing is a *phase.Halt of InputReady, what oslo.config
// would refuse one of ServiceConfigReady.
//
// at is the path of customServiceConfig.
func ReadSnippets(ctx context.Context, r *inputs.Reader, namespace, at, custom string, secrets []string) (Snippets, error) {
	if _, err := oslo.Parse(custom); err != nil {
		return Snippets{}, phase.Stalled(condition.ServiceConfigReadyCondition, podifiedv1.InvalidConfigReason, "%s: %v", at, err)
	}
	var joined bytes.Buffer
	for _, name := range secrets {
		data, err := r.Secret(ctx, namespace, name)
		if err != nil {
			return Snippets{}, inputs.Halt(condition.InputReadyCondition, err)
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if _, err := oslo.ParseSecret(string(data[key])); err != nil {
				return Snippets{}, phase.Stalled(condition.ServiceConfigReadyCondition, podifiedv1.InvalidConfigReason,
					"%sSecrets: Secret %q, key %q: %v", at, name, key, err)
			}
			joined.Write(data[key])
			joined.WriteByte('\n')
		}
	}
	return Snippets{custom, joined.String()}, nil
}

// Sets reports whether the snippets set an option. They have been checked.
func (s Snippets) Sets(section, key string) bool {
	return slices.ContainsFunc([]string{s.Custom, s.Secrets}, func(text string) bool {
		config, err := oslo.Parse(text)
		return err == nil && config.Get(section, key) != nil
	})
}

// Files returns the configuration of a service: what is generated, and what
// people give, in the order in which oslo.config reads a directory.
func (s Snippets) Files(service, generated string) map[string][]byte {
	files := map[string][]byte{fmt.Sprintf("01-%s.conf", service): []byte(generated)}
	if s.Custom != "" {
		files[fmt.Sprintf("02-%s-override.conf", service)] = []byte(s.Custom)
	}
	if s.Secrets != "" {
		files[fmt.Sprintf("03-%s-secrets.conf", service)] = []byte(s.Secrets)
	}
	return files
}

// MySQL returns the connection to a database on a MySQL or MariaDB server.
func MySQL(host, user, password, database string) string {
	return fmt.Sprintf("mysql+pymysql://%s@%s/%s?charset=utf8", url.UserPassword(user, password), host, database)
}
