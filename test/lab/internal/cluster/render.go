package cluster

import (
	"embed"
	"strings"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*"))

// render fills in one of the templates. The templates are part of the program
// and their data is made next to them: a mistake there is a bug, and panics.
func render(name string, data map[string]string) string {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		panic(err)
	}
	return out.String()
}
