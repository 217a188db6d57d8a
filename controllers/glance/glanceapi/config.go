package glanceapi

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

//go:embed templates/01-glance.conf
var glanceConf string

var glanceTemplate = template.Must(template.New("01-glance.conf").Funcs(template.FuncMap{"oslo": oslo.Quote}).Parse(glanceConf))

// ownDatabase is that of a pod which was given none.
const ownDatabase = "sqlite:////var/lib/glance/glance.sqlite"

// configInputs are what the configuration is made from.
type configInputs struct {
	Name string
	Port int
	// FileStore reports whether people name no backend.
	FileStore bool
	// Connection to the database; empty when people give it.
	Connection      string
	KeystoneAuthURL string
	ServiceUser     string
	ServicePassword string
}

// render returns the configuration, or an error that says that a value cannot
// be written.
func (c configInputs) render() (string, error) {
	var out strings.Builder
	if err := glanceTemplate.Execute(&out, c); err != nil {
		return "", fmt.Errorf("rendering 01-glance.conf: %w", err)
	}
	return out.String(), nil
}
