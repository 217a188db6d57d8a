package oslo

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// maxErrors bounds what a hostile megabyte of one-letter lines can cost.
	maxErrors = 1000
	// maxShown is how many errors a message spells out.
	maxShown = 10
	// maxQuoted is how many characters of a line an error quotes.
	maxQuoted = 120
)

const (
	reasonNotUTF8   = `is not valid UTF-8; save the text as UTF-8`
	reasonBOM       = `starts with a byte order mark; save the text as UTF-8 without BOM`
	reasonOrphan    = `is indented but continues no option (blank lines, comments and section headers end a value); remove the indentation, or move the line directly below its option`
	reasonUnclosed  = `starts a section but does not end with "]"; write "[section]" and nothing else on the line, not even a comment`
	reasonUnnamed   = `names no section; write "[DEFAULT]" or the section meant`
	reasonNoKey     = `has no key before the value; write "key = value"`
	noSeparator     = `is neither "[section]" nor "key = value"`
	reasonNoSection = `stands before any section; put "[DEFAULT]" or the section meant on a line above it`
)

// ParseError is one line that oslo.config rejects.
type ParseError struct {
	// Line is the number of the rejected line, from 1, counting lines as
	// oslo.config does ("\n", "\r\n" and "\r" end one). An option without a
	// section is reported where it stands, whereas oslo.config names the line
	// at which it noticed that the option ends.
	Line int
	// Text is the line without trailing space, cut if very long. Secrets are
	// masked as "***": what follows a key that looks like one (password,
	// transport_url, connection, secret, token, *_key and the like), what
	// stands between ":" and "@" as in a URL, and lines that may belong to the
	// secret before them. Text is safe to log if the text as a whole is no
	// secret; else see WithoutText. It is empty there.
	Text string
	// Reason says what is wrong and what to write instead, to be read after
	// Text.
	Reason string

	// osloLine is the line number in oslo.config's own message.
	osloLine int
}

// Error returns the line number, the masked line and the reason.
func (e *ParseError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d: %q %s", e.Line, e.Text, e.Reason)
}

// Errors are the mistakes of one text in line order, at most 1000.
type Errors []*ParseError

// Error returns the first mistakes, one a line, and how many more there are.
func (e Errors) Error() string {
	var lines []string
	for _, err := range e[:min(len(e), maxShown)] {
		lines = append(lines, err.Error())
	}
	if more := len(e) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As and errors.Is each mistake.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// WithoutText returns the mistakes without any word of the text: line numbers and
// reasons. It is for a text from a Secret, where masking by key is not enough: it
// may be a private key, or a password and nothing else.
func (e Errors) WithoutText() Errors {
	bare := make(Errors, len(e))
	for i, err := range e {
		bare[i] = &ParseError{Line: err.Line, Reason: err.Reason, osloLine: err.osloLine}
		if strings.HasPrefix(err.Reason, noSeparator) {
			bare[i].Reason = reasonNoSeparator("") // the remedy quotes the key
		}
	}
	return bare
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// reasonNoSeparator names the option that the masked line seems to mean.
func reasonNoSeparator(text string) string {
	key, _, _ := strings.Cut(text, " ")
	if !identifier.MatchString(key) || len(key) > maxQuoted {
		key = "key"
	}
	return fmt.Sprintf(noSeparator+`; write "%s = <value>" or start the line with "#" if it is a comment`, key)
}

// shorten makes masked text fit for a message. It must come after masking: a
// cut could take away what marks the rest as a secret.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if runes := []rune(text); len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "…"
	}
	return text
}
