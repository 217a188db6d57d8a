package edpm

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// MatchesLimit reports whether an Ansible host pattern selects the host. Patterns
// are separated by ":" or ","; each is "all", "*", a name with the wildcards of
// a shell, or "~" and a regular expression; "!" in front excludes and "&"
// intersects (docs.ansible.com, "Patterns: targeting hosts and groups"). It
// returns an error that quotes the part that cannot be read.
func MatchesLimit(limit, host string) (bool, error) {
	selected, anyPlain := false, false
	intersect, exclude := true, false
	for _, part := range splitLimit(limit) {
		op, pattern := byte(0), part
		if part[0] == '!' || part[0] == '&' {
			op, pattern = part[0], part[1:]
		}
		matched, err := matchesPattern(pattern, host)
		if err != nil {
			return false, err
		}
		switch op {
		case '!':
			exclude = exclude || matched
		case '&':
			intersect = intersect && matched
		default:
			anyPlain, selected = true, selected || matched
		}
	}
	return (selected || !anyPlain) && intersect && !exclude, nil
}

// splitLimit leaves regular expressions whole between separators.
func splitLimit(limit string) []string {
	var parts []string
	for _, part := range strings.FieldsFunc(limit, func(r rune) bool { return r == ':' || r == ',' }) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func matchesPattern(pattern, host string) (bool, error) {
	if pattern == "all" || pattern == "*" {
		return true, nil
	}
	if expr, ok := strings.CutPrefix(pattern, "~"); ok {
		re, err := regexp.Compile("^(?:" + expr + ")")
		if err != nil {
			return false, fmt.Errorf("ansibleLimit: %q is not a regular expression: %w", expr, err)
		}
		return re.MatchString(host), nil
	}
	matched, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), host)
	if err != nil {
		return false, fmt.Errorf("ansibleLimit: %q is not a host pattern: close the bracket, or write \\[ for a bracket", pattern)
	}
	return matched, nil
}
