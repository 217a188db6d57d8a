package catalogue

import (
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// types return what is expected in the place of a value, "" if the image takes it, by the
// name of a type: oslo_config/types.py. Of others every value is taken.
var types = map[string]func(*Option, string) string{
	"string value":         (*Option).text,
	"boolean value":        (*Option).boolean,
	"integer value":        (*Option).integer,
	"port value":           (*Option).integer,
	"floating point value": (*Option).float,
	"dict value":           (*Option).dict,
	"IP address value":     (*Option).address,
	"hostname value":       (*Option).hostname,
	"host address value":   (*Option).host,
	"host domain value":    (*Option).domain,
	"uri value":            (*Option).uri,
}

// expected returns what is expected in the place of a value, "" if the image takes it.
func (o *Option) expected(value string) string {
	if check := types[o.Type]; check != nil {
		return check(o, value)
	}
	return ""
}

// text with choices. Whether their case counts is not known, so it does not.
func (o *Option) text(value string) string {
	if _, found := o.choice(value); found || len(o.Choices) == 0 {
		return ""
	}
	return o.oneOf()
}

// choice is the one that is the value but for the case.
func (o *Option) choice(value string) (choice string, found bool) {
	at := slices.IndexFunc(o.Choices, func(c string) bool { return strings.EqualFold(c, value) })
	if at < 0 {
		return "", false
	}
	return o.Choices[at], true
}

// maxChoices is how many choices a message has.
const maxChoices = 12

func (o *Option) oneOf() string {
	shown := make([]string, 0, maxChoices)
	for _, choice := range o.Choices[:min(len(o.Choices), maxChoices)] {
		shown = append(shown, strconv.Quote(choice))
	}
	if more := len(o.Choices) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("or one of %d others", more))
	}
	return "one of " + strings.Join(shown, ", ")
}

func (o *Option) boolean(value string) string {
	switch strings.ToLower(value) {
	case "true", "1", "on", "yes", "false", "0", "off", "no":
		return ""
	}
	return "true or false"
}

// maxDigits is how many digits Python reads: sys.int_info.default_max_str_digits.
const maxDigits = 4300

var (
	integers = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)
	floats   = regexp.MustCompile(`^[+-]?([0-9]+(_[0-9]+)*(\.([0-9]+(_[0-9]+)*)?)?|\.[0-9]+(_[0-9]+)*)([eE][+-]?[0-9]+(_[0-9]+)*)?$`)
	words    = regexp.MustCompile(`(?i)^[+-]?(inf|infinity|nan)$`)
)

// integer and float: an empty number is None.
func (o *Option) integer(value string) string {
	value = digits(value)
	if value == "" {
		return ""
	}
	number := strings.ReplaceAll(value, "_", "")
	if !integers.MatchString(value) || len(strings.TrimLeft(number, "+-")) > maxDigits {
		return "an integer" + o.limits()
	}
	exact, _ := new(big.Int).SetString(number, 10)
	return o.within(new(big.Float).SetInt(exact), "an integer")
}

func (o *Option) float(value string) string {
	value = digits(value)
	switch {
	case value == "":
		return ""
	case strings.Contains(strings.ToLower(value), "nan") && words.MatchString(value):
		return "" // neither less nor more than anything
	case !floats.MatchString(value) && !words.MatchString(value):
		return "a number" + o.limits()
	}
	number, _ := strconv.ParseFloat(strings.ReplaceAll(value, "_", ""), 64) // beyond the range it is infinite, as in Python
	return o.within(big.NewFloat(number), "a number")
}

// digits are what Python's int and float read: they leave out spaces, and know the digits
// of all scripts.
func digits(value string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}
		return '0' + (r-rowStart(r))%10
	}, strings.TrimFunc(value, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }))
}

// rowStart is the first of the digits that follow one another, of one script or more: each has
// ten.
func rowStart(r rune) rune {
	for unicode.Is(unicode.Nd, r-1) {
		r--
	}
	return r
}

func (o *Option) within(number *big.Float, kind string) string {
	if len(o.Choices) > 0 {
		for _, choice := range o.Choices {
			if c, err := strconv.ParseFloat(choice, 64); err == nil && number.Cmp(big.NewFloat(c)) == 0 {
				return ""
			}
		}
		return o.oneOf()
	}
	if o.Min != nil && number.Cmp(big.NewFloat(*o.Min)) < 0 || o.Max != nil && number.Cmp(big.NewFloat(*o.Max)) > 0 {
		return kind + o.limits()
	}
	return ""
}

func (o *Option) limits() string {
	switch {
	case len(o.Choices) > 0:
		return ", " + o.oneOf()
	case o.Min != nil && o.Max != nil:
		return fmt.Sprintf(" from %v to %v", *o.Min, *o.Max)
	case o.Min != nil:
		return fmt.Sprintf(" of at least %v", *o.Min)
	case o.Max != nil:
		return fmt.Sprintf(" of at most %v", *o.Max)
	}
	return ""
}

const pairs = "pairs name:value, separated by commas, each name once"

// dict has pairs with values that may have commas: what has no ":" belongs to the next pair.
func (o *Option) dict(value string) string {
	value = strings.TrimSpace(value)
	if value == "" {
		return ""
	}
	seen, pair := map[string]bool{}, ""
	parts := strings.Split(value, ",")
	for i, part := range parts {
		pair += part
		name, _, complete := strings.Cut(pair, ":")
		name = strings.TrimSpace(name)
		switch {
		case !complete && i == len(parts)-1, complete && (name == "" || seen[name]):
			return pairs
		case complete:
			seen[name], pair = true, ""
		default:
			pair += ","
		}
	}
	return ""
}

func (o *Option) address(value string) string {
	if address, err := netip.ParseAddr(value); err == nil && address.Zone() == "" {
		return ""
	}
	return "an IP address"
}

// Labels of host names. Case is ignored as Python does: two letters of other scripts are
// those of ASCII.
var (
	hostLabel   = regexp.MustCompile(`^[A-Za-z0-9\x{17F}\x{212A}-]{1,63}\n?$`)
	domainLabel = regexp.MustCompile(`^[A-Za-z0-9_\x{17F}\x{212A}-]{1,63}\n?$`)
	topLabel    = regexp.MustCompile(`[a-zA-Z-]`)
)

func (o *Option) hostname(value string) string { return named(value, hostLabel, "a host name") }

func (o *Option) host(value string) string {
	if o.address(value) == "" {
		return ""
	}
	return named(value, hostLabel, "an IP address or a host name")
}

func (o *Option) domain(value string) string {
	if o.address(value) == "" {
		return ""
	}
	return named(value, domainLabel, "an IP address or a host name")
}

func named(value string, label *regexp.Regexp, expected string) string {
	if n := utf8.RuneCountInString(value); n == 0 || n > 253 {
		return expected
	}
	labels := strings.Split(strings.TrimSuffix(value, "."), ".")
	if !topLabel.MatchString(labels[len(labels)-1]) {
		return expected
	}
	for _, l := range labels {
		if !label.MatchString(l) || strings.HasPrefix(l, "-") || strings.HasSuffix(strings.TrimSuffix(l, "\n"), "-") {
			return expected
		}
	}
	return ""
}

// addresses with scheme, host and path: RFC 3986, of which other letters of the path are
// encoded. Which schemes are allowed is not known.
var addresses = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?` +
	`((?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[[^\]]*\]):?(?:[0-9]{1,5})?(?:/[^?#\[\]]*)?(?:[?#]|$)`)

func (o *Option) uri(value string) string {
	if match := addresses.FindStringSubmatch(value); match != nil && isHost(match[1]) {
		return ""
	}
	return "an address with scheme and host, such as http://host:port/path"
}

var (
	fourNumbers = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`)
	leading     = regexp.MustCompile(`(^|\.)0+([0-9])`)
)

// isHost reports whether the host of an address, if it is one by number, is a valid one.
func isHost(host string) bool {
	if inner, found := strings.CutPrefix(host, "["); found {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && address.Is6()
	}
	if !fourNumbers.MatchString(host) {
		return true
	}
	_, err := netip.ParseAddr(leading.ReplaceAllString(host, "$1$2"))
	return err == nil
}
