package picture

import (
	"fmt"
	"html"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
)

// The measures of the picture, in pixels: as wide as a GitHub comment.
const (
	width      = 800
	margin     = 24
	markWidth  = 24
	gap        = 10
	lineHeight = 18
	rowPadding = 10
	mostLines  = 3
)

// style has the colors of GitHub, light and dark, with a text contrast of at least 4.5 to 1.
const style = `
.talosop text { font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
.talosop text { fill: #1f2328 }
.talosop .page { fill: #ffffff; stroke: #d1d9e0 }
.talosop .line { stroke: #d1d9e0 }
.talosop text.name { font-size: 20px; font-weight: 600 }
.talosop text.heading { font-size: 14px; font-weight: 600 }
.talosop text.muted { fill: #59636e; font-size: 12px }
.talosop .True { fill: #1a7f37 }
.talosop .False { fill: #cf222e }
.talosop .Unknown { fill: #9a6700 }
.talosop .sign { fill: none; stroke: #ffffff; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
.talosop text { fill: #f0f6fc }
.talosop .page { fill: #0d1117; stroke: #3d444d }
.talosop .line { stroke: #3d444d }
.talosop text.muted { fill: #9198a1 }
.talosop .True { fill: #3fb950 }
.talosop .False { fill: #f85149 }
.talosop .Unknown { fill: #d29922 }
.talosop .sign { stroke: #0d1117 }
}
`

// shapes are the symbols of a status in a square of 16 pixels: a circle with a tick, a square with a cross, a diamond
// with a question mark.
var shapes = map[health.Status]struct{ what, shape string }{
	health.True: {"well", `<circle class="True" cx="8" cy="8" r="8"/><path class="sign" d="M4.5 8.5l2.5 2.5 4.5-5.5"/>`},
	health.False: {"not well",
		`<rect class="False" width="16" height="16" rx="3"/><path class="sign" d="M5 5l6 6M11 5l-6 6"/>`},
	health.Unknown: {"not known", `<path class="Unknown" d="M8-1l9 9-9 9-9-9z"/>` +
		`<path class="sign" d="M6 6.2a2 2 0 1 1 2.7 1.9q-.7.3-.7 1.2M8 11.7v.1"/>`},
}

// drawing is an SVG that grows downward.
type drawing struct {
	strings.Builder

	y int
}

// SVG renders a cluster as an image in the reader's light or dark colors: one file without scripts that loads
// nothing.
func SVG(o Observation) string {
	p := pageOf(o)

	d := &drawing{y: margin}
	d.header(p)

	for _, t := range p.tables {
		d.table(t)
	}

	var out strings.Builder

	height := d.y + margin - rowPadding
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="talosop" role="img" `+
		`aria-labelledby="talosop-title talosop-desc" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&out, "<title id=\"talosop-title\">Cluster %s: %s</title>\n<desc id=\"talosop-desc\">%s</desc>\n",
		escaped(p.name), p.state, escaped(p.summary))
	fmt.Fprintf(&out, "<style>%s</style>\n", style)
	fmt.Fprintf(&out, `<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", width-1, height-1)
	out.WriteString(d.String())
	out.WriteString("</svg>\n")

	return out.String()
}

// header is the name of the cluster, its health, and the facts.
func (d *drawing) header(p page) {
	const (
		labelWidth = 90
		nameHeight = 34
		stateWidth = 130
		// textSize and nameSize are those of the fonts.
		textSize, nameSize = 13, 20
	)

	d.mark(margin, d.y+2, p.status)
	text := wrapped(p.name, (width-2*margin-markWidth-stateWidth)*textSize/nameSize, 1)
	d.text(margin+markWidth+4, d.y+17, "name", append(text, "")[0])
	fmt.Fprintf(&d.Builder, `<text class="heading" text-anchor="end" x="%d" y="%d">%s</text>`+"\n",
		width-margin, d.y+15, p.state)
	d.y += nameHeight

	for _, f := range p.facts {
		d.text(margin, d.y+13, "muted", f.label)

		var text strings.Builder
		for _, c := range f.text {
			text.WriteString(c.text)
		}

		d.y += d.lines(margin+labelWidth, width-2*margin-labelWidth, text.String()) * lineHeight
	}

	d.y += rowPadding
}

func (d *drawing) table(t table) {
	const headingHeight, columnsHeight = 38, 22

	d.text(margin, d.y+22, "heading", t.heading)
	d.y += headingHeight

	left := margin
	if t.marked {
		left += markWidth
	}

	x := left
	for _, c := range t.columns {
		d.text(x, d.y+12, "muted", c.name)
		x += c.width
	}

	d.y += columnsHeight

	for _, r := range t.rows {
		fmt.Fprintf(&d.Builder, `<path class="line" d="M%d %d.5H%d"/>`+"\n", margin, d.y-3, width-margin)

		if t.marked {
			d.mark(margin, d.y+2, r.status)
		}

		x, most := left, 1
		for i, c := range r.cells {
			most = max(most, d.lines(x, t.columns[i].width-gap, c.text))
			x += t.columns[i].width
		}

		d.y += most*lineHeight + rowPadding - 2
	}

	if t.more > 0 {
		d.text(left, d.y+12, "muted", fmt.Sprintf("and %d more", t.more))
		d.y += columnsHeight
	}

	d.y += rowPadding
}

// lines writes a text into a column and returns the number of lines.
func (d *drawing) lines(x, room int, text string) int {
	lines := wrapped(text, room, mostLines)
	for i, line := range lines {
		d.text(x, d.y+14+i*lineHeight, "", line)
	}

	return max(len(lines), 1)
}

func (d *drawing) text(x, y int, class, text string) {
	if text == "" {
		return
	}

	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}

	fmt.Fprintf(&d.Builder, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, escaped(text))
}

func (d *drawing) mark(x, y int, status health.Status) {
	fmt.Fprintf(&d.Builder, "<g transform=\"translate(%d %d)\"><title>%s</title>%s</g>\n",
		x, y, shapes[status].what, shapes[status].shape)
}

// escaped is a text as XML. Characters that XML does not permit are already removed.
func escaped(text string) string { return html.EscapeString(text) }
