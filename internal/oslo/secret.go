package oslo

import (
	"regexp"
	"slices"
	"strings"
)

// Mask stands for a hidden value.
const Mask = "***"

var (
	// secretParts make a key look like a secret wherever they occur in it.
	secretParts = []string{
		"password", "passwd", "passphrase", "secret", "token", "credential",
		"transport_url", "transporturl", "connection",
	}
	// secretEnds do so only at its end: "public_key_file" is a path.
	secretEnds = []string{"key", "keys", "pass", "pwd"}

	word = regexp.MustCompile(`[\pL\pN_-]+`)
	// userinfo is greedy, for a password may itself contain ":" or "@".
	userinfo = regexp.MustCompile(`:.*@`)
	// header is a section header, closed or not, that holds nothing but a name.
	header = regexp.MustCompile(`^\[[\w.-]*(\]\s*([#;]|$)|$)`)
	// boolean values are no secret.
	boolean = regexp.MustCompile(`(?i)^(true|false)$`)
	// separator is what stands between a key and its value, closing quotes
	// and brackets of the key included.
	separator = regexp.MustCompile(`^["'\])]*\s*[=:]?\s*`)
)

// looksSecret reports whether the value of the key is to be kept from messages.
// It rather errs on the side of hiding: a hidden "connection_debug = 1" costs
// nothing.
func looksSecret(key string) bool {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(key, part) }) ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(key, end) })
}

// Masked returns the value of an option without secrets: nothing of it where the key looks
// like one of a secret (password, transport_url, connection, secret, token, *_key and the
// like) and the value is neither true nor false, and elsewhere without passwords of addresses
// and what follows such a word.
func Masked(key, value string) string {
	if looksSecret(key) && !boolean.MatchString(value) {
		return hideValue(value)
	}
	lines, secret := strings.Split(value, "\n"), false
	for i, line := range lines {
		lines[i] = mask(line, secret)
		secret = secret || mentionsSecret(line)
	}
	return strings.Join(lines, "\n")
}

// mentionsSecret reports whether any word of the line looks like a secret's key.
func mentionsSecret(line string) bool {
	return slices.ContainsFunc(word.FindAllString(line, -1), looksSecret)
}

// mask hides what may be secret in a rejected line. Such a line has no
// dependable shape, so any word may be the key. With secret set the line
// follows a secret and may be a part of it, hence only a header is kept.
func mask(line string, secret bool) string {
	head := header.FindString(line)
	rest := line[len(head):]
	if secret {
		return head + hideValue(rest)
	}
	rest = userinfo.ReplaceAllString(rest, ":"+Mask+"@")
	for _, at := range word.FindAllStringIndex(rest, -1) {
		if looksSecret(rest[at[0]:at[1]]) {
			return head + rest[:at[1]] + hideAfterKey(rest[at[1]:])
		}
	}
	return head + rest
}

// hideAfterKey hides what follows a key, but keeps the "=" to show the shape.
func hideAfterKey(rest string) string {
	at := len(separator.FindString(rest))
	return rest[:at] + hideValue(rest[at:])
}

// hideValue shows whether there is a value, nothing else.
func hideValue(value string) string {
	if value == "" {
		return ""
	}
	return Mask
}
