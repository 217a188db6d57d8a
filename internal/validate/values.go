package validate

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules for single values, by the names that the engine knows them by.
const (
	hostname  = "edpm_hostname"
	address   = "edpm_address"
	ip        = "ip"
	httpURL   = "http_url"
	playbook  = "edpm_playbook"
	user      = "edpm_user"
	limit     = "edpm_limit"
	tags      = "edpm_tags"
	mountPath = "edpm_mountpath"
	subPath   = "edpm_subpath"
)

// remedies say what to write instead, for each rule.
var remedies = map[string]string{
	hostname:  `is not a host name (RFC 1123): use letters, digits and "-" in labels of at most 63 characters separated by ".", for example edpm-compute-0.example.com`,
	address:   `is neither an IP address nor a host name (RFC 1123): write for example 192.168.122.100 or edpm-compute-0.example.com, without brackets, port or user`,
	ip:        `is not an IP address: write for example 192.168.122.100 or fd00::100, without a prefix length`,
	httpURL:   `is not a URL: write http:// or https:// and a host, for example https://keystone.example.com:5000`,
	playbook:  `is neither a fully qualified playbook name (namespace.collection.playbook, for example edpm.operators.install_os) nor a relative path that stays under /runner/project, for example playbooks/site.yaml`,
	user:      `is not a user name: start with a letter or "_" and use no spaces, for example cloud-admin`,
	limit:     `is not a host pattern: separate names or patterns by "," or ":" without spaces, for example edpm-compute-0,edpm-compute-1 or edpm-compute-[0-3]:!edpm-compute-2`,
	tags:      `is not a list of tags: separate them by "," without spaces, for example install,configure`,
	mountPath: `is not a clean absolute path: start with "/" and do not use "..", ".", "//", ":" or a trailing "/", for example /etc/ceph`,
	subPath:   `is not a relative path: do not use a leading "/" or "..", for example ceph.conf`,
}

var (
	// fqcn is the rule that the webhook of openstack-ansibleee-operator has.
	fqcn      = regexp.MustCompile(`^\w+(\.\w+){2,}$`)
	userName  = regexp.MustCompile(`^[A-Za-z_][\w.@\\-]*\$?$`)
	tagList   = regexp.MustCompile(`^[^\s,-][^\s,]*(,[^\s,-][^\s,]*)*$`)
	limitPart = regexp.MustCompile(`^[!&]?[^\s!&@,:-][^\s,]*$`)
	// numeric is the last label of what was meant as an IPv4 address. No
	// top-level domain is numeric (RFC 3696, section 2).
	numeric = regexp.MustCompile(`^[0-9]+$`)
	// userinfo of a URL is a secret.
	userinfo = regexp.MustCompile(`//[^/@]*@`)
)

var engine = newEngine()

func newEngine() *validator.Validate {
	v := validator.New()
	v.RegisterAlias(hostname, "max=253,hostname_rfc1123,edpm_notnumeric")
	v.RegisterAlias(address, "ip|edpm_name")
	for tag, rule := range map[string]func(string) bool{
		"edpm_notnumeric": func(s string) bool { return !numeric.MatchString(lastLabel(s)) },
		"edpm_name":       func(s string) bool { return v.Var(s, hostname) == nil },
		playbook:          func(s string) bool { return fqcn.MatchString(s) || relativePath(s) },
		user:              userName.MatchString,
		limit:             hostPattern,
		tags:              tagList.MatchString,
		mountPath:         absolutePath,
		subPath:           relativePath,
	} {
		must(v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return rule(f.Field().String()) }))
	}
	return v
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// check applies one rule. An unset field is in order: whether it may be unset
// is the schema's business.
func check(path *field.Path, value, rule string) field.ErrorList {
	if value == "" {
		return nil
	}
	var failed validator.ValidationErrors
	if !errors.As(engine.Var(value, rule), &failed) {
		return nil
	}
	shown := userinfo.ReplaceAllString(value, "//"+masked+"@")
	return field.ErrorList{field.Invalid(path, shown, remedies[rule])}
}

// Hostname checks a host name (RFC 1123). What looks like a mistyped IPv4
// address is none.
func Hostname(path *field.Path, value string) field.ErrorList { return check(path, value, hostname) }

// Address checks what Ansible connects to: an IP address or a host name.
func Address(path *field.Path, value string) field.ErrorList { return check(path, value, address) }

// IP checks an IPv4 or IPv6 address.
func IP(path *field.Path, value string) field.ErrorList { return check(path, value, ip) }

// HTTPURL checks the URL of a service. A password in it is not shown.
func HTTPURL(path *field.Path, value string) field.ErrorList { return check(path, value, httpURL) }

// User checks the name of a login, which ends up in arguments of ssh.
func User(path *field.Path, value string) field.ErrorList { return check(path, value, user) }

// Playbook checks the name of a playbook of the image (rule of
// openstack-ansibleee-operator), which may not lead out of /runner/project.
func Playbook(path *field.Path, value string) field.ErrorList { return check(path, value, playbook) }

// Limit checks an Ansible host pattern. "@file" would read a file of the
// runner, and a leading "-" would be taken for an option.
func Limit(path *field.Path, value string) field.ErrorList { return check(path, value, limit) }

// Tags checks a list of Ansible tags.
func Tags(path *field.Path, value string) field.ErrorList { return check(path, value, tags) }

func lastLabel(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// hostPattern reports whether each part between separators can be a pattern over
// host names, as edpm.MatchesLimit reads it. A ":" separates even in brackets:
// name[0:3] would be a slice of a group, and hosts are meant here.
func hostPattern(s string) bool {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ':' })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p string) bool { return !limitPart.MatchString(p) || !readable(p) })
}

// readable reports whether the wildcards or the regular expression of a part are
// well formed.
func readable(part string) bool {
	pattern := strings.TrimLeft(part, "!&")
	var err error
	if expr, ok := strings.CutPrefix(pattern, "~"); ok {
		_, err = regexp.Compile(expr)
	} else {
		_, err = path.Match(pattern, "")
	}
	return err == nil
}
