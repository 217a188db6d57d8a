package validate

import (
	"strings"
	"unicode"
)

// WithoutControls returns a text with blanks for what cannot be printed: hosts and
// images that a user made write what they like, and it is shown on terminals.
func WithoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
