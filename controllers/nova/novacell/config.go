package novacell

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

//go:embed templates
var files embed.FS

// Templates of the configuration of computes and of the conductor. They share
// how nova authenticates.
const (
	computeTemplate   = "01-nova.conf"
	conductorTemplate = "conductor.conf"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{"oslo": oslo.Quote}).ParseFS(files, "templates/*.conf"))

// configInputs are what the configuration is made from.
type configInputs struct {
	Cell              string
	TransportURL      string
	ServicePassword   string
	KeystoneAuthURL   string
	ServiceUser       string
	Keystone          novav1.KeystoneScope
	NoVNCProxyBaseURL string
	// Connection and APIConnection to the databases, for the conductor.
	Connection, APIConnection string
}

// render returns the configuration that a template gives, or an error that names the value that
// cannot be written without quoting it.
func (c configInputs) render(name string) (string, error) {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, c); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.String(), nil
}
