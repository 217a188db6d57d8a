package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are licences under which a program may be handed on that is under the
// Apache License 2.0: they ask for no more than that their text goes along. Of
// MPL-2.0 the files stay as they are.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "Unlicense", "Zlib"}

// judged are the licences of modules whose text the classifier cannot tell, by a
// person who has read it.
var judged = map[string]string{}

// file is how files with licences are named.
var file = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([._-].*)?$`)

// certain is how sure the classifier has to be.
const certain = 0.9

// classify returns the classifier with the texts of all licences, which take seconds to
// load.
var classify = sync.OnceValues(assets.DefaultClassifier)

// license finds the licences of the modules. The first error names those that have
// none that is allowed.
func license(modules []*goModule) (refused, err error) {
	known, err := classify()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.Texts, err = licenseTexts(m.Dir); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.Path, err)
		}
		m.Licenses = names(known, m)
		refused = errors.Join(refused, verdict(m))
	}
	return refused, nil
}

// licenseTexts returns the files with licences of a directory.
func licenseTexts(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, entry := range entries {
		if entry.IsDir() || !file.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts[entry.Name()] = string(text)
	}
	return texts, nil
}

// names returns the licences that the texts of a module are.
func names(known *classifier.Classifier, m *goModule) []string {
	if name, ok := judged[m.Path]; ok {
		return []string{name}
	}
	var found []string
	for _, text := range m.Texts {
		for _, match := range known.Match([]byte(text)).Matches {
			if match.MatchType == "License" && match.Confidence >= certain {
				found = append(found, match.Name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func verdict(m *goModule) error {
	switch bad := slices.DeleteFunc(slices.Clone(m.Licenses), func(name string) bool { return slices.Contains(allowed, name) }); {
	case len(m.Licenses) == 0:
		return fmt.Errorf("module %s %s: no licence is found in %s: read it, and add it to judged in hack/release/licences.go", m.Path, m.Version, m.Dir)
	case len(bad) > 0:
		return fmt.Errorf("module %s %s: licence %s is not among those that are allowed: do without the module", m.Path, m.Version, strings.Join(bad, ", "))
	}
	return nil
}

// table has a line for each module.
func table(modules []*goModule) string {
	b := &strings.Builder{}
	b.WriteString("module,version,licences\n")
	for _, m := range modules {
		fmt.Fprintf(b, "%s,%s,%s\n", m.Path, m.Version, strings.Join(m.Licenses, " "))
	}
	return b.String()
}

// texts has what the licences ask to hand on.
func texts(modules []*goModule) string {
	b := &strings.Builder{}
	for _, m := range modules {
		for _, name := range slices.Sorted(maps.Keys(m.Texts)) {
			fmt.Fprintf(b, "==== %s %s: %s\n\n%s\n\n", m.Path, m.Version, name, strings.TrimSpace(m.Texts[name]))
		}
	}
	return b.String()
}
