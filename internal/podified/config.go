package podified

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Snippets are the parts of a configuration that people give, in the order in
// which the service reads them after what is generated.
type Snippets struct {
	Custom  string
	Secrets string
	// Parts are the texts that these are made of.
	Parts []Part
}

// Part is one text, with the field, and the key of a Secret, in which people find it.
type Part struct {
	At, Text string
	Secret   bool
}

// Texts are the parts of the configuration of one program, and the image that reads them.
type Texts struct {
	Image string
	Parts []Part
}

// ReadSnippets checks customServiceConfig and reads customServiceConfigSecrets,
// whose values are joined in the order of the names and, within a Secret, of
// the keys. What is missing is a *phase.Halt of InputReady, what oslo.config
// would refuse one of ServiceConfigReady.
//
// at is the path of customServiceConfig.
func ReadSnippets(ctx context.Context, r *inputs.Reader, service identity.Service, namespace, at, custom string, secrets []string) (Snippets, error) {
	if err := check(service, oslo.Parse, custom); err != nil {
		return Snippets{}, phase.Stalled(condition.ServiceConfigReadyCondition, podifiedv1.InvalidConfigReason, "%s: %v", at, err)
	}
	parts := []Part{{At: at, Text: custom}}
	var joined bytes.Buffer
	for _, name := range secrets {
		data, err := r.Secret(ctx, namespace, name)
		if err != nil {
			return Snippets{}, named(at+"Secrets", inputs.Halt(condition.InputReadyCondition, err))
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if err := check(service, oslo.ParseSecret, string(data[key])); err != nil {
				return Snippets{}, phase.Stalled(condition.ServiceConfigReadyCondition, podifiedv1.InvalidConfigReason,
					"%sSecrets: Secret %q, key %q: %v", at, name, key, err)
			}
			parts = append(parts, Part{fmt.Sprintf("%sSecrets: Secret %q, key %q", at, name, key), string(data[key]), true})
			joined.Write(data[key])
			joined.WriteByte('\n')
		}
	}
	return Snippets{custom, joined.String(), parts}, nil
}

// named names the field of what is missing.
func named(field string, err error) error {
	var halt *phase.Halt
	if errors.As(err, &halt) {
		halt.Message = field + ": " + halt.Message
	}
	return err
}

// check returns what oslo.config would refuse of a text, or what would make another
// service of the service.
func check(service identity.Service, parse func(string) (*oslo.Config, error), text string) error {
	config, err := parse(text)
	if err != nil {
		return err
	}
	return identity.Check(service, config)
}

// Sets reports whether the snippets set an option. They have been checked.
func (s Snippets) Sets(section, key string) bool {
	_, set := s.Value(section, key)
	return set
}

// Value returns what the service reads for an option, and whether the snippets set it.
func (s Snippets) Value(section, key string) (value string, set bool) {
	for _, text := range []string{s.Custom, s.Secrets} {
		config, err := oslo.Parse(text)
		if err != nil {
			continue
		}
		for _, v := range config.Get(section, key) {
			value, set = v, true
		}
	}
	return value, set
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

// MySQL returns the connection to a database on a MySQL or MariaDB server. Line breaks
// at the end of the password are left out: tools that make Secrets of files add them.
func MySQL(host, user, password, database string) string {
	password = strings.TrimRight(password, "\r\n")
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // IPv6
	}
	return fmt.Sprintf("mysql+pymysql://%s@%s/%s?charset=utf8", url.UserPassword(user, password), host, database)
}
