// Package names makes names and label values of names that may be too long for them, and
// lists names in messages.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// MaxLabel is the most characters that a label value has, and a label of DNS: the name
	// of a Job, which is a label of its Pods.
	MaxLabel = 63
	// MaxObject is the most characters that the name of an object has, unless it is a label too.
	MaxObject = 253
	// hashLength is how many characters of a hash tell names apart.
	hashLength = 10
)

// WithHash returns as much of the name as fits into limit characters with a "-" and the
// first ten characters of the hash behind it. What is left of a name that is cut ends
// with a letter or a digit, as label values and DNS labels do.
func WithHash(name, hash string, limit int) string {
	hash = hash[:hashLength]
	if longest := limit - 1 - hashLength; len(name) > longest {
		name = strings.TrimRight(name[:longest], "-._")
	}
	return name + "-" + hash
}

// Few names are enough for a person to see which objects a message is about.
const Few = 5

// List returns names for a message, of which it names the first at most.
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Fit returns the name if it has at most limit characters, and otherwise [WithHash] of
// it and its own hash: two long names never become one.
func Fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return WithHash(name, hex.EncodeToString(sum[:]), limit)
}
