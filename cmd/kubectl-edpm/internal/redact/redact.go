// Package redact takes secrets out of what is handed to others.
//
// It knows them in two ways: by their value, when it is given the Secrets of
// the cluster, and by what they look like: passwords in addresses, assignments
// to names that say password, token or the like, and private keys.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Redacted is what stands in the place of a secret.
const Redacted = "*****MASKED*****"

// Shortest values that are masked wherever they are: those under a name that
// says secret, and all others. Shorter ones are parts of too many words.
const (
	shortestSecret = 3
	shortest       = 6
	// shortestLine of a value of several lines, for example of a key.
	shortestLine = 16
)

// secretNames are how names end whose value is secret. A name that is "secret"
// alone refers to a Secret.
const secretNames = `(?:password|passwd|passphrase|token|private[_-]?key|secret[_-]?key|access[_-]?key|api[_-]?key|encryption[_-]?key|_secret|client[_-]?secret|[_-]pass)`

var (
	// secretName is a name whose value is secret. Names like sshKeySecretName and
	// passwordSelectors refer to a secret and are none.
	secretName = regexp.MustCompile(`(?i)(?:` + secretNames + `|secret|credentials?)$`)
	// assignment of such a name, in oslo.config, YAML, JSON, and JSON in a string.
	assignment = regexp.MustCompile(`(?im)((?:^|[\s"'\\{,;&?])[\w.-]*` + secretNames + `\\?["']?[ \t]*[=:][ \t]*\\?["']?)([^\s"'\\,;&}]+)`)
	// line that is such an assignment and nothing else: its value can have spaces.
	// A log can have the time before it.
	line = regexp.MustCompile(`(?im)(^(?:\d{4}-\d\d-\d\dT\S+ )?[ \t]*(?:- )?[\w.-]*` + secretNames + `[ \t]*[=:][ \t]*)(\S.*)$`)
	// address with users: what is between :// and the last @ of
	// scheme://user:password@host,user:password@host.
	address = regexp.MustCompile(`://[^\s/"']*@`)
	// privateKey in PEM, also in a string of JSON.
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	// bearer tokens, and JSON Web Tokens wherever they are.
	bearer = regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`)
	jwt    = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`)
	// entry of a document in a Secret, for example of a configuration file.
	entry = regexp.MustCompile(`(?m)^[ \t]*"?([\w.-]+)"?[ \t]*[=:][ \t]*"?([^"\n]+?)"?[ \t\r]*$`)
)

// public are keys of Secrets whose values are no secret.
var public = []string{"namespace", "ca.crt", "tls.crt", "service-ca.crt", "username", "user", "host", "hostname", "port", "database", "region"}

// Redactor masks the values that it was made with, and what looks like a secret.
type Redactor struct {
	values   []string
	replacer *strings.Replacer
}

// New returns a Redactor of everything that is secret in the Secrets.
func New(secrets []corev1.Secret) *Redactor {
	found := map[string]bool{}
	for i := range secrets {
		for key, value := range secrets[i].Data {
			if !slices.Contains(public, key) {
				collect(found, key, string(value))
			}
		}
	}
	m := &Redactor{}
	for value := range found {
		m.values = append(m.values, value)
	}
	// A value that contains another one comes first.
	slices.SortFunc(m.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, value := range m.values {
		pairs = append(pairs, value, Redacted)
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

// Values returns how many different texts are masked by their value.
func (m *Redactor) Values() int { return len(m.values) }

// collect adds a value and its parts.
func collect(found map[string]bool, name, value string) {
	value = strings.TrimSpace(value)
	add := func(text string, least int) {
		if len(text) >= least {
			for _, form := range forms(text) {
				found[form] = true
			}
		}
	}
	least := shortest
	if secretName.MatchString(name) {
		least = shortestSecret
	}
	if strings.Contains(value, "\n") {
		collectLines(add, value)
	} else {
		add(value, least)
	}
	for _, found := range address.FindAllString(value, -1) {
		eachPassword(found, func(password string) string {
			add(password, shortestSecret)
			return password
		})
	}
}

// forms are the ways in which a text can be written.
func forms(text string) []string {
	quoted, _ := json.Marshal(text) // a string can always be marshalled
	return []string{
		text, string(bytes.Trim(quoted, `"`)), url.QueryEscape(text), url.PathEscape(text),
		base64.StdEncoding.EncodeToString([]byte(text)), base64.RawStdEncoding.EncodeToString([]byte(text)),
		base64.URLEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text + "\n")),
	}
}

// collectLines adds what is secret in a text of several lines: all of it, lines
// that are a single word, as those of a key, and values of names that say so.
func collectLines(add func(string, int), value string) {
	add(value, shortest)
	for _, line := range strings.Split(value, "\n") {
		if line = strings.TrimSpace(line); !strings.ContainsAny(strings.TrimRight(line, "="), " \t:=[]") {
			add(line, shortestLine)
		}
	}
	for _, m := range entry.FindAllStringSubmatch(value, -1) {
		if secretName.MatchString(m[1]) {
			add(m[2], shortestSecret)
		}
	}
}

// Text returns the text without secrets.
func (m *Redactor) Text(text string) string {
	text = m.replacer.Replace(text)
	text = privateKey.ReplaceAllString(text, Redacted)
	text = address.ReplaceAllStringFunc(text, func(found string) string {
		return eachPassword(found, func(string) string { return Redacted })
	})
	text = bearer.ReplaceAllString(text, "${1}"+Redacted)
	text = jwt.ReplaceAllString(text, Redacted)
	for _, pattern := range []*regexp.Regexp{line, assignment} {
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			parts := pattern.FindStringSubmatch(found)
			if harmless(strings.TrimSpace(parts[2])) {
				return found
			}
			return parts[1] + Redacted
		})
	}
	return text
}

// eachPassword replaces the passwords of an address, which ends with its last "@".
// Before each "@" is a user with a password; from the second one on, the host
// before and a comma come first (oslo.messaging, TransportURL). Where there is no
// comma, the "@" was part of the password.
func eachPassword(address string, replace func(string) string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSuffix(address, "@"), "://"), "@")
	for i, part := range parts {
		host, user, ok := strings.Cut(part, ",")
		if i == 0 {
			host, user, ok = "", part, true
		} else {
			host += ","
		}
		name, password, found := strings.Cut(user, ":")
		switch {
		case !ok:
			parts[i] = replace(part)
		case found && password != "":
			parts[i] = host + name + ":" + replace(password)
		}
	}
	return "://" + strings.Join(parts, "@") + "@"
}

// harmless values are worth more to the reader than to anybody else.
func harmless(value string) bool {
	return slices.Contains([]string{"true", "false", "null", "{}", "[]", "{", "[", "|", ">", "|-", Redacted}, value)
}

// Object returns an object as JSON has it, without secrets: those that Text
// finds in any of its strings, and the whole values of fields and environment
// variables whose names say password and the like. It changes the object.
func (m *Redactor) Object(value any) any {
	switch v := value.(type) {
	case string:
		return m.Text(v)
	case []any:
		for i, item := range v {
			v[i] = m.Object(item)
		}
	case map[string]any:
		m.fields(v)
	}
	return value
}

func (m *Redactor) fields(fields map[string]any) {
	name, _ := fields["name"].(string)
	for key, value := range fields {
		text, isText := value.(string)
		secret := secretName.MatchString(key) && !refers(key) || key == "value" && secretName.MatchString(name)
		if secret && isText && text != "" {
			fields[key] = Redacted
		} else {
			fields[key] = m.Object(value)
		}
	}
}

// refers reports whether a field names a Secret or where something is, by the
// names of edpm-operators: secret, transportURLSecret, ansibleSSHPrivateKeySecret.
func refers(key string) bool {
	return key == "secret" || strings.HasSuffix(key, "Secret") && key != "clientSecret"
}
