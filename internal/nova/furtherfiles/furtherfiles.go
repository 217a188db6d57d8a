// Package furtherfiles knows the files that services of nova read next to their options: which
// names a service reads, and whether their content can be read.
package furtherfiles

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// maxBytes of all files of one object or template, as of a customServiceConfig.
const maxBytes = 256 << 10

// Names of files, as nova has them by default. Of definitions of providers there can be several.
const (
	policy     = "policy.yaml"
	Paste      = "api-paste.ini"
	VendorData = "vendor_data.json"
	providers  = "provider*.yaml"
)

// provider is the name of a definition of resource providers, which is also a key of a Secret.
var provider = regexp.MustCompile(`^provider[A-Za-z0-9._-]{0,200}\.yaml$`)

// Service is a program of nova that reads further files.
type Service struct {
	program string
	names   []string
}

// Services, and what they read. nova-compute asks its policy who may attach an external network,
// and makes config drives, which have vendor data
// (https://docs.openstack.org/nova/latest/admin/vendordata.html).
var (
	API        = Service{"the API", []string{policy, Paste}}
	Metadata   = Service{"the metadata service", []string{Paste, VendorData}}
	NoVNCProxy = Service{"the console proxy", nil}
	Compute    = Service{"nova-compute", []string{policy, providers, VendorData}}
)

// reads returns why the service reads no file of the name; empty if it does.
func (s Service) reads(name string) string {
	switch {
	case slices.Contains(s.names, name) && name != providers, slices.Contains(s.names, providers) && provider.MatchString(name):
		return ""
	case len(s.names) == 0:
		return s.program + " reads no further files: remove it"
	}
	return fmt.Sprintf("%s reads no such file: the names are %s", s.program, strings.Join(s.names, ", "))
}

// File is one file, with the field in which people find it.
type File struct {
	Name, At string
	// Text of the file, unless From has it.
	Text string
	From *common.ConfigFile
}

// Files returns the files of an object or template, sorted by name. at is its path.
func Files(at string, f novav1.FurtherFiles) []File {
	var all []File
	for name, text := range f.DefaultConfigOverwrite {
		all = append(all, File{Name: name, At: fmt.Sprintf("%s.defaultConfigOverwrite[%s]", at, name), Text: text})
	}
	for i := range f.ConfigFiles {
		from := &f.ConfigFiles[i]
		all = append(all, File{Name: from.Name, At: fmt.Sprintf("%s.configFiles[%s]%s", at, from.Name, origin(from)), From: from})
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.At, b.At)) })
	return all
}

// origin is the object and the key that have the content.
func origin(f *common.ConfigFile) string {
	kind, from := f.Source()
	if from == nil {
		return ""
	}
	return fmt.Sprintf(": %s %q, key %q", kind, from.Name, from.Key)
}

// refuses returns why the service cannot have a file; empty if it can. total is the size of all
// files so far.
func (s Service) refuses(name string, again bool, total int) string {
	switch why := s.reads(name); {
	case why != "":
		return why
	case again:
		return "is both in defaultConfigOverwrite and in configFiles: remove one of them"
	case total > maxBytes:
		return fmt.Sprintf("with it the files have %d bytes, and the maximum is %d: shorten them", total, maxBytes)
	}
	return ""
}

// Check returns why the service cannot have a file; empty if it can. again reports whether it has
// one of the name, and total is the size of all its files so far. No text of the file is in it.
func (s Service) Check(name, text string, again bool, total int) string {
	return cmp.Or(s.refuses(name, again, total), problem(name, text))
}

// Providers are the names of the definitions of providers, sorted.
func Providers(files map[string][]byte) []string {
	names := slices.Sorted(maps.Keys(files))
	return slices.DeleteFunc(names, func(name string) bool { return !provider.MatchString(name) })
}
