// Command shorten takes out of generated pages the lists of nested attributes that only say "As there.": the attribute
// that they belong to names the place where the same ones are described.
package main

import (
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)

	for _, page := range os.Args[1:] {
		if err := shortenFile(page); err != nil {
			log.Fatal(err)
		}
	}
}

func shortenFile(page string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}

	//nolint:gosec // pages are for everybody
	if err := os.WriteFile(page, []byte(shorten(string(content))), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}

	return nil
}

var (
	// section is the list of the attributes of one attribute, up to the next one or the next heading.
	section = regexp.MustCompile(`(?m)^<a id="(nestedatt--[^"]+)"></a>\n### .*\n`)
	heading = regexp.MustCompile(`(?m)^## `)
	entry   = regexp.MustCompile("(?m)^- `.*$")
	again   = regexp.MustCompile(`\) As there\.( \(\[below\]\(#[^)]*\)\))?$`)
)

// shorten drops the lists in which every entry says so, and the links to them.
func shorten(page string) string {
	var out strings.Builder

	rest := 0

	var dropped []string

	for _, at := range section.FindAllStringSubmatchIndex(page, -1) {
		end := len(page)

		if next := section.FindStringIndex(page[at[1]:]); next != nil {
			end = at[1] + next[0]
		} else if next := heading.FindStringIndex(page[at[1]:]); next != nil {
			end = at[1] + next[0]
		}

		if !repeats(page[at[1]:end]) {
			continue
		}

		out.WriteString(page[rest:at[0]])

		rest = end
		dropped = append(dropped, page[at[2]:at[3]])
	}

	out.WriteString(page[rest:])

	short := out.String()
	for _, id := range dropped {
		short = strings.ReplaceAll(short, " ([below](#"+id+"))", "")
	}

	return short
}

// repeats reports whether a list has entries, and all of them are described elsewhere.
func repeats(list string) bool {
	entries := entry.FindAllString(list, -1)

	for _, line := range entries {
		if !again.MatchString(line) {
			return false
		}
	}

	return len(entries) > 0
}
