package oslo

import (
	"errors"
	"strings"
	"unicode"
)

// Quote returns the text such that oslo.config reads it back as it is: "$"
// would start a substitution, and quotes and spaces at the ends would be cut.
// A value with a line break cannot be written, and must not: what follows the
// break would be configuration. The error does not show the value.
func Quote(text string) (string, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("a value has a line break or another control character")
	}
	escaped := strings.ReplaceAll(text, "$", "$$")
	if escaped != strings.TrimSpace(escaped) || strings.HasPrefix(escaped, `"`) || strings.HasPrefix(escaped, "'") {
		escaped = `"` + escaped + `"`
	}
	return escaped, nil
}
