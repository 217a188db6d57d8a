// Package oslo reads oslo.config snippets such as customServiceConfig.
//
// It accepts and rejects exactly what oslo.config does, and finds the same
// values. The rules are those of oslo_config/iniparser.py (BaseParser) as
// oslo_config/cfg.py (ConfigParser) drives it: the file is UTF-8 text opened
// in universal newline mode and read line by line.
//
// A general INI library is no substitute. With and without its Python options,
// gopkg.in/ini.v1 v1.67.3 admits files that keep nova-compute from starting:
// keys before the first section, a comment behind a section header, a byte
// order mark, an indented line that continues nothing. It refuses a value that
// begins with three quotes, and unless each is switched off it drops repeated
// keys, cuts values at " #" and joins lines at a backslash, so that it shows
// values nova-compute does not see. TestVerdictsAgreeWithRealOsloConfig holds
// this package to the real parser.
//
// What a value means is not checked: "debug = maybe" parses here as it does in
// oslo.config, which objects only once the service asks for the option.
//
// Snippets hold secrets. Errors and warnings never carry the value of an
// option whose key looks like a secret; see [ParseError]. Those of a text from a
// Secret carry nothing of it; see [ParseSecret].
package oslo
