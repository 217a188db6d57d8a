package oslo

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bom is the byte order mark, which oslo.config takes for an ordinary letter.
const bom = "\ufeff"

// universalNewlines turns every line ending into "\n", as Python's open does.
var universalNewlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Parse reads the text of one configuration file by oslo.config's rules.
//
// It returns the Config, or an error of type [Errors] when oslo.config would
// refuse the file. oslo.config stops at its first error; Parse continues and
// reports every mistake, once each: what only follows from a reported mistake
// (the options under a rejected header, say) is not reported again.
//
// Source of the rules: oslo_config/iniparser.py, BaseParser.parse.
func Parse(text string) (*Config, error) {
	p := parser{cfg: newConfig(text)}
	for line := range strings.Lines(universalNewlines.Replace(text)) {
		if len(p.errs) == maxErrors {
			break
		}
		p.line++
		p.read(line)
	}
	p.flush()
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return p.cfg, nil
}

// ParseSecret is Parse for a text that comes from a Secret: the errors have line
// numbers and reasons, and no word of the text.
func ParseSecret(text string) (*Config, error) {
	config, err := Parse(text)
	if errs := (Errors)(nil); errors.As(err, &errs) {
		return nil, errs.WithoutText()
	}
	return config, err
}

// parser is the state between two lines.
type parser struct {
	cfg     *Config
	errs    Errors
	line    int      // number of the line being read, from 1
	section string   // current section, "" before the first header
	lost    bool     // a missing or rejected header was reported: drop options
	option  *pending // what an indented line continues, nil if nothing
	secret  bool     // the latest key looks like a secret, so may what follows
}

// pending is an option whose value may still continue in the next line.
type pending struct {
	key      string
	value    []string
	line     int
	text     string
	rejected bool // reported already; kept to swallow its continuation lines
}

func (p *parser) read(line string) {
	line = strings.TrimRightFunc(line, isSpace)
	switch {
	case line == "":
		p.flush()
	case !utf8.ValidString(line):
		p.flush()
		p.rejectOption(line, reasonNotUTF8)
	case line[0] == ' ' || line[0] == '\t': // no other space indents in oslo
		p.continuation(line)
	default:
		p.flush()
		p.statement(line)
	}
}

func (p *parser) continuation(line string) {
	if p.option == nil {
		p.reject(line, reasonOrphan)
		return
	}
	p.option.value = append(p.option.value, strings.TrimLeftFunc(line, isSpace))
}

func (p *parser) statement(line string) {
	switch line[0] {
	case '[':
		p.header(line)
	case '#', ';':
		p.comment(line)
	default:
		p.assignment(line)
	}
}

// header starts a section. The name is everything between the brackets, spaces
// and further brackets included, as oslo.config takes it.
func (p *parser) header(line string) {
	name, closed := strings.CutSuffix(line[1:], "]")
	switch {
	case !closed:
		p.reject(line, reasonUnclosed)
	case name == "":
		p.reject(line, reasonUnnamed)
	default:
		p.cfg.section(name)
		p.section, p.lost, p.secret = name, false, false
		return
	}
	p.lost = true
}

// comment only notes that a secret was commented out, because the lines meant
// to go with it may have been forgotten and be rejected next.
func (p *parser) comment(line string) {
	key, _, found := cutAssignment(line[1:])
	p.secret = p.secret || found && looksSecret(key)
}

func (p *parser) assignment(line string) {
	key, value, found := cutAssignment(line)
	switch {
	case !found:
		p.rejectOption(line, "")
	case key == "":
		// Without a key nothing reports whether the value is a secret.
		p.rejectOption(line[:strings.IndexAny(line, "=:")+1]+hideValue(value), reasonNoKey)
	default:
		p.option = &pending{key: key, value: []string{unquote(value)}, line: p.line, text: line}
		p.secret = looksSecret(key)
	}
}

// flush ends the pending option and stores it.
func (p *parser) flush() {
	o := p.option
	p.option = nil
	switch {
	case o == nil || o.rejected || p.lost:
	case p.section == "":
		p.lost = true
		p.fail(o.line, mask(o.text, false), reasonNoSection)
	default:
		p.cfg.add(p.section, o.key, Value{Text: strings.Join(o.value, "\n"), Line: o.line})
	}
}

// rejectOption rejects a line that was likely meant as an option, so that its
// indented lines are not reported as well.
func (p *parser) rejectOption(line, reason string) {
	p.reject(line, reason)
	p.option = &pending{rejected: true}
}

// reject reports the line being read.
func (p *parser) reject(line, reason string) {
	p.fail(p.line, mask(line, p.secret), reason)
	p.secret = p.secret || mentionsSecret(line)
}

// fail records an error about line number at; text must be masked already.
// Without a reason the line lacks a separator, and the remedy quotes its text.
func (p *parser) fail(at int, text, reason string) {
	if reason == "" {
		reason = reasonNoSeparator(text)
	}
	if after, found := strings.CutPrefix(text, bom); found && at == 1 && reason != reasonNotUTF8 {
		reason = reasonBOM
		p.lost = p.lost || strings.HasPrefix(after, "[")
	}
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &ParseError{Line: at, Text: shorten(text), Reason: reason, osloLine: p.line})
	}
}

// cutAssignment splits a line at its first "=" or ":", whichever comes first.
func cutAssignment(line string) (key, value string, found bool) {
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		return "", "", false
	}
	return strings.TrimFunc(line[:at], isSpace), strings.TrimFunc(line[at+1:], isSpace), true
}

// unquote drops one pair of equal quotes around a value. A lone quote is its
// own pair to oslo.config and leaves the empty string.
func unquote(value string) string {
	if value == `"` || value == `'` {
		return ""
	}
	if last := len(value) - 1; last > 0 && value[0] == value[last] && (value[0] == '"' || value[0] == '\'') {
		return value[1:last]
	}
	return value
}

// isSpace is Python's str.isspace, which also has the four ASCII separators
// that unicode.IsSpace lacks.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}
