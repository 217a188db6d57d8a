package catalogue

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// key is the name of an option in a file: oslo_config/cfg.py, Opt.dest.
func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

var spaces = regexp.MustCompile(`\s+`)

// firstSentence makes a reason of an image fit for a message.
func firstSentence(reason string) string {
	reason = strings.TrimSpace(spaces.ReplaceAllString(reason, " "))
	if at := strings.Index(reason, ". "); at >= 0 {
		reason = reason[:at]
	}
	reason = strings.TrimRight(strings.Map(printable, reason), ".")
	if runes := []rune(reason); len(runes) > maxReason {
		return string(runes[:maxReason]) + "…"
	}
	return reason
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}

// nearest returns the name that is the most like another one, "" if none is much like it.
func nearest(name string, names []string) string {
	best, least := "", max(1, len(name)/4)+1
	slices.Sort(names)
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n), least); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is how many letters are to be added, removed, replaced or exchanged with the next
// one, at most limit (optimal string alignment).
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
