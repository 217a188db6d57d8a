package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// isTerminal reports whether a person looks at what is written.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// tame takes out of what is written what would move the cursor, colour or rename
// a terminal: messages of objects and the output of runs can come from anybody.
type tame struct{ io.Writer }

// Write writes all lines of a text.
func (w tame) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// printable returns a text in which U+FFFD stands for each control character but
// line ends and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// painter colours what is written if it goes to a terminal, unless NO_COLOR is
// set (https://no-color.org).
type painter struct{ io.Writer }

// Write writes all lines of a text.
func (p painter) Write(text []byte) (int, error) {
	below, wrapped := p.Writer.(tame)
	if !wrapped || !isTerminal(below.Writer) || os.Getenv("NO_COLOR") != "" {
		return p.Writer.Write(text)
	}
	if _, err := io.WriteString(below.Writer, paint(printable(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

const (
	red    = "\033[31m"
	green  = "\033[32m"
	yellow = "\033[33m"
	normal = "\033[0m"
)

var colours = map[string]string{
	"True": green, "Succeeded": green,
	"False": red, "Failed": red, "Refused": red, "Unreachable": red,
	"Unknown": yellow, "Running": yellow, "NoResult": yellow,
}

var coloured = regexp.MustCompile(`\b(True|False|Unknown|Succeeded|Failed|Refused|Unreachable|Running|NoResult)\b`)

// paint colours the words that say how something stands, but not those of
// messages, which are indented.
func paint(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = coloured.ReplaceAllStringFunc(line, func(word string) string { return colours[word] + word + normal })
		}
	}
	return strings.Join(lines, "")
}
