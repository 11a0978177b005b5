// Command messages prints the reference page of the errors and warnings of the provider, from the catalogs of its
// packages.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/finding/expand"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

const head = `---
page_title: "Errors and warnings"
subcategory: "Reference"
description: |-
  The errors and warnings of the provider, with what they mean and what to do.
---

# Errors and warnings

This page lists the messages of the provider by topic. Words in *italics* stand for names and values of your
configuration.
The [troubleshooting guide](troubleshooting.md) shows common mistakes with their output.
`

func main() {
	log.SetFlags(0)

	if err := write(os.Stdout, provider.Messages()); err != nil {
		log.Fatal(err)
	}
}

// write prints the page.
func write(w io.Writer, catalogs []*finding.Catalog) error {
	var page strings.Builder

	page.WriteString(head)

	for _, catalog := range catalogs {
		fmt.Fprintf(&page, "\n## %s\n", catalog.Concept())

		for _, message := range catalog.Messages() {
			entry, err := entryOf(message)
			if err != nil {
				return fmt.Errorf("message %s: %w", message.Code, err)
			}

			page.WriteString(entry)
		}
	}

	_, err := io.WriteString(w, page.String())

	return err
}

// entryOf is the entry of one message.
func entryOf(m finding.Message) (string, error) {
	summary, err := shown(m.Summary)
	if err != nil {
		return "", err
	}

	entry := fmt.Sprintf("\n### %s\n\n**%s**: %s\n", strings.ReplaceAll(m.Code, "_", " "), m.Severity, summary)

	for _, part := range m.Detail {
		text, err := shown(part)
		if err != nil {
			return "", err
		}

		entry += "\n" + strings.TrimSpace(text) + "\n"
	}

	return entry, nil
}

// shown is a template with the names of its arguments in italics.
func shown(text string) (string, error) {
	inCode := false

	literal := func(text string) string {
		inCode = inCode != (strings.Count(text, "`")%2 == 1)

		return text
	}

	argument := func(a expand.Action) string {
		name := strings.ReplaceAll(a.Name, "_", " ")

		switch {
		case a.Function == "plural":
			return a.Forms[len(a.Forms)-1]
		case inCode:
			return strings.ToUpper(a.Name)
		case a.Function == "quote":
			return `"*` + name + `*"`
		case a.Function == "bullets":
			return "\n\n- *" + name + "*\n\n"
		default:
			return "*" + name + "*"
		}
	}

	page, err := expand.Template(text, literal, argument, nil)

	return strings.ReplaceAll(page, "\n\n ", "\n\n"), err
}
