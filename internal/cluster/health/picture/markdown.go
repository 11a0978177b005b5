package picture

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
)

// marks are the symbols of a status. They also differ in shape.
var marks = map[health.Status]string{health.True: "✅", health.False: "❌", health.Unknown: "❔"}

// Markdown renders a cluster in GitHub Flavored Markdown, which GitLab, Gitea and Bitbucket support as well.
func Markdown(o Observation) string {
	var out strings.Builder

	p := pageOf(o)

	fmt.Fprintf(&out, "### %s Cluster %s: %s\n\n", marks[p.status], quoted(p.name).markdown(), p.state)

	for _, f := range p.facts {
		fmt.Fprintf(&out, "- **%s**: %s\n", f.label, joined(f.text))
	}

	for _, t := range p.tables {
		out.WriteString("\n")

		if t.folded {
			fmt.Fprintf(&out, "<details><summary>%s</summary>\n\n", t.heading)
		} else {
			fmt.Fprintf(&out, "**%s**\n\n", t.heading)
		}

		t.markdown(&out)

		if t.folded {
			out.WriteString("\n</details>\n")
		}
	}

	return out.String()
}

func (t table) markdown(out *strings.Builder) {
	names := make([]string, 0, len(t.columns)+1)
	if t.marked {
		names = append(names, "")
	}

	for _, c := range t.columns {
		names = append(names, c.name)
	}

	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))

	for _, r := range t.rows {
		texts := make([]string, 0, len(names))
		if t.marked {
			texts = append(texts, marks[r.status])
		}

		for _, c := range r.cells {
			texts = append(texts, c.markdown())
		}

		fmt.Fprintf(out, "| %s |\n", strings.Join(texts, " | "))
	}

	if t.more > 0 {
		fmt.Fprintf(out, "\nand %d more\n", t.more)
	}
}

func joined(cells []cell) string {
	var out strings.Builder

	for _, c := range cells {
		out.WriteString(c.markdown())
	}

	return out.String()
}

// markdown is the cell, as a code span if its text is external, fenced by more backticks than it contains in a row. A
// bar ends a table cell even in a code span, and escaping it fails after a backslash (GitHub Flavored Markdown 0.29,
// 4.10), so a broken bar replaces it.
func (c cell) markdown() string {
	if !c.quoted {
		return c.text
	}

	text := strings.ReplaceAll(c.text, "|", "¦")

	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}

	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}

	return fence + text + fence
}
