package statuspage

import (
	_ "embed" // the template and its style
	"html/template"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health/picture"
)

var (
	//go:embed page.css
	style string
	//go:embed page.html.tmpl
	source string

	page = template.Must(template.New("page").Parse(source))
)

// HTML renders a page. The same page renders the same bytes.
func HTML(p Page) (string, error) {
	var out strings.Builder

	err := page.Execute(&out, viewOf(p))

	return out.String(), err
}

// longest is the length in runes at which texts of machines are cut off.
const longest = 300

// text is a text from elsewhere in one line, without invisible characters that change its display.
func text(s string) string { return picture.OneLine(s, longest) }
