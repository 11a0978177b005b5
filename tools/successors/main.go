// Command successors prints the page of the fields of the main document and the documents that newer versions of Talos
// have for them, from the table by which patches are converted.
package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/convert"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

const head = `---
page_title: "Fields and documents"
subcategory: "Reference"
description: |-
  Which document of Talos has the settings of each field of the main document, and since which version.
---

# Fields and documents

Newer versions of Talos have documents for fields of the main document (` + "`machine` and `cluster`" + `). The function
[` + "`convert_patches`" + `](../functions/convert_patches.md) converts patches by this table, and
[Move a cluster to contract v1.14](move-to-contract-1-14.md) shows when you need it.

- **Since** is the version contract from which patches use the document. Older contracts keep the field.
- A document of **control planes** is refused on workers, where the field has no effect.

| field of the main document | document | field | since | machines | conversion |
|---|---|---|---|---|---|
`

func main() {
	log.SetFlags(0)

	if err := write(os.Stdout, places.All()); err != nil {
		log.Fatal(err)
	}
}

// write prints the page, with a row for each fact that says what becomes of a field.
func write(w io.Writer, facts []places.Fact) error {
	facts = slices.DeleteFunc(slices.Clone(facts), func(f places.Fact) bool { return f.Conversion == "" })
	slices.SortFunc(facts, func(a, b places.Fact) int { return cmp.Compare(a.Main.String(), b.Main.String()) })

	var page strings.Builder

	page.WriteString(head)

	for _, f := range facts {
		page.WriteString(row(f))
	}

	_, err := io.WriteString(w, page.String())

	return err
}

func row(f places.Fact) string {
	document, field, since, machines := "", "", "", "all"

	if at := f.Document; at.Kind != "" && f.Conversion != places.Stays && f.Conversion != places.Lost {
		document, since = code(at.Kind), fmt.Sprintf("v1.%d", convert.Since(f))
		field = code(strings.Join(at.Path, "."))
	}

	if convert.OfControlPlanes(f) {
		machines = "control planes"
	}

	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", code(f.Main.String()), document, field, since, machines,
		becomes(f))
}

// becomes is what the conversion does, for readers.
func becomes(f places.Fact) string {
	switch f.Conversion {
	case places.Moves:
		return "moves"
	case places.Inverts:
		return "the opposite value"
	case places.Rewritten:
		return f.Why
	case places.Lost:
		return "none: " + f.Why
	default:
		return string(f.Conversion) + ": " + f.Why
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}

	return "`" + text + "`"
}
