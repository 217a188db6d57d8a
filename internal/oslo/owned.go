package oslo

import (
	"fmt"
	"strings"
)

// Warning is an assignment to an option that the deployment sets itself. It
// carries no value and is safe to log.
type Warning struct {
	Section string // as spelled in the header
	Key     string
	File    int // as in Value
	Line    int
}

// String returns the warning with its line number and a remedy.
func (w Warning) String() string {
	return fmt.Sprintf("line %d: [%s] %s is set by the operator and this value overrides it; remove the line unless this is intended",
		w.Line, w.Section, w.Key)
}

// Owned returns a Warning for each assignment to an option that the deployment
// owns: message bus and database addresses, and passwords. To set them is
// allowed. The order is that of [Config.Sections].
//
// Only names that oslo.config would take for these options count: it folds the
// case of sections, not of keys.
func Owned(cfg *Config) []Warning {
	var warnings []Warning
	for _, s := range cfg.sections {
		for _, o := range s.Options {
			if !owned(Group(s.Name), o.Key) {
				continue
			}
			for _, v := range o.Values {
				warnings = append(warnings, Warning{Section: s.Name, Key: o.Key, File: v.File, Line: v.Line})
			}
		}
	}
	return warnings
}

// owned takes the section as a group name. Deprecated names that oslo.db still
// reads are owned as well, since they too replace the deployment's value.
func owned(group, key string) bool {
	switch key {
	case "transport_url", "metadata_proxy_shared_secret", "sql_connection":
		return true
	case "connection", "slave_connection":
		return group == "database" || group == "sql" || strings.HasSuffix(group, "_database")
	}
	return strings.HasSuffix(key, "password")
}
