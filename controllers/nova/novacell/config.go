package novacell

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"unicode"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

//go:embed templates/01-nova.conf
var novaConf string

var novaTemplate = template.Must(template.New("01-nova.conf").Funcs(template.FuncMap{"oslo": osloValue}).Parse(novaConf))

// configInputs are what the configuration of the computes is made from.
type configInputs struct {
	Cell              string
	TransportURL      string
	ServicePassword   string
	KeystoneAuthURL   string
	ServiceUser       string
	Keystone          novav1.KeystoneScope
	NoVNCProxyBaseURL string
}

// render returns the configuration, or an error that names the value that
// cannot be written without quoting it.
func (c configInputs) render() (string, error) {
	var out strings.Builder
	if err := novaTemplate.Execute(&out, c); err != nil {
		return "", fmt.Errorf("rendering 01-nova.conf: %w", err)
	}
	return out.String(), nil
}

// osloValue writes a value such that oslo.config reads it back as it is: "$"
// would start a substitution, and quotes and spaces at the ends would be cut.
// A value with a line break cannot be written, and must not: what follows the
// break would be configuration.
func osloValue(value string) (string, error) {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", fmt.Errorf("a value has a line break or another control character")
	}
	escaped := strings.ReplaceAll(value, "$", "$$")
	if escaped != strings.TrimSpace(escaped) || strings.HasPrefix(escaped, `"`) || strings.HasPrefix(escaped, "'") {
		escaped = `"` + escaped + `"`
	}
	return escaped, nil
}
