//go:build unix

package provider_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tutorialBlock is a block of commands or of their output.
type tutorialBlock struct {
	language, terminal, text string
	// section is the number of the heading above it.
	section int
	// fails is whether the output after these commands shows an error; took is how long they ran.
	fails bool
	took  time.Duration
}

// inTerminal is the first line of a block for another terminal.
var inTerminal = regexp.MustCompile(`^# (\w+) terminal\n`)

// parseTutorial returns the blocks of commands and outputs of the page.
func parseTutorial(page string) []tutorialBlock {
	var blocks []tutorialBlock

	for section, text := range strings.Split(page, sectionStart) {
		for _, found := range codeBlock.FindAllStringSubmatch(text, -1) {
			block := tutorialBlock{language: found[1], text: found[2], section: section}
			if name := inTerminal.FindStringSubmatch(block.text); name != nil {
				block.terminal = name[1]
			}

			if last := len(blocks) - 1; block.language == "text" && strings.Contains(block.text, "Error: ") {
				blocks[last].fails = true
			}

			if block.language == "sh" || block.language == "text" {
				blocks = append(blocks, block)
			}
		}
	}

	return blocks
}

const sectionStart = "\n## "

// sectionTime is how long the commands of a section take.
var sectionTime = regexp.MustCompile(`(?m)^Time: \d+ seconds?\.$`)

// rewritten is the page, or its template, with the outputs of the blocks and the times of the sections.
func rewritten(page string, blocks []tutorialBlock) string {
	outputs := slices.DeleteFunc(slices.Clone(blocks), func(b tutorialBlock) bool { return b.language != "text" })
	page = codeBlock.ReplaceAllStringFunc(page, func(block string) string {
		if !strings.HasPrefix(block, "```text\n") {
			return block
		}

		output := outputs[0].text
		outputs = outputs[1:]

		return "```text\n" + output + "```"
	})
	sections := strings.Split(page, sectionStart)

	for i, text := range sections {
		var took time.Duration

		for _, block := range blocks {
			if block.section == i {
				took += block.took
			}
		}

		seconds := max(1, int(took.Round(time.Second).Seconds()))
		unit := map[bool]string{true: "second", false: "seconds"}[seconds == 1]
		sections[i] = sectionTime.ReplaceAllString(text, fmt.Sprintf("Time: %d %s.", seconds, unit))
	}

	return strings.Join(sections, sectionStart)
}

// omission stands for lines that the page leaves out.
const omission = "…"

// parts are the lines between omissions.
func (b tutorialBlock) parts() [][]string {
	parts := [][]string{nil}

	for _, line := range strings.Split(strings.TrimSuffix(inTerminal.ReplaceAllString(b.text, ""), "\n"), "\n") {
		if line == omission {
			parts = append(parts, nil)
		} else {
			parts[len(parts)-1] = append(parts[len(parts)-1], line)
		}
	}

	return parts
}

// matches reports a part of a block that the output does not have, in order. Without an omission at its start and its
// end, the output has nothing else there. The output of a program that runs may go on.
func (b tutorialBlock) matches(output []string) error {
	parts, at := b.parts(), 0

	for i, part := range parts {
		found := find(part, output[at:])

		switch {
		case len(part) == 0:
			continue
		case found < 0:
			return fmt.Errorf("the output does not have these lines after line %d:\n%s", at, strings.Join(part, "\n"))
		case i == 0 && found > 0:
			return fmt.Errorf("the output has more lines before %q", part[0])
		}

		at += found + len(part)
	}

	if last := parts[len(parts)-1]; b.terminal == "" && len(last) > 0 && find(last, output[len(output)-len(last):]) != 0 {
		return fmt.Errorf("the output has more lines after %q", last[len(last)-1])
	}

	return nil
}

// find is where the output has the lines of a part; -1 if it has not.
func find(part, output []string) int {
	for i := range len(output) - len(part) + 1 {
		if slices.EqualFunc(part, output[i:i+len(part)], sameLine) {
			return i
		}
	}

	return -1
}

// renewed is the text of a block with new lines: those between the first and the last line of each of its parts.
func (b tutorialBlock) renewed(output []string) (string, error) {
	var text []string

	if b.terminal != "" {
		text = append(text, strings.SplitAfterN(b.text, "\n", 2)[0][:strings.Index(b.text, "\n")])
	}

	for i, part := range b.parts() {
		if i > 0 {
			text = append(text, omission)
		}

		if len(part) == 0 {
			continue
		}

		first := find(part[:1], output)
		if first < 0 {
			return "", fmt.Errorf("the output has no line %q", part[0])
		}

		length := 1
		if last := find(part[len(part)-1:], output[first+1:]); len(part) > 1 && last < 0 {
			return "", fmt.Errorf("the output has no line %q after %q", part[len(part)-1], part[0])
		} else if len(part) > 1 {
			length = last + 2
		}

		if find(part, output[first:]) != 0 {
			part = output[first : first+length]
		}

		for _, line := range part {
			text = append(text, shown(line))
		}

		output = output[first+length:]
	}

	return strings.Join(text, "\n") + "\n", nil
}

// variable are the parts of lines that each run has others of, and what they become before a comparison.
var variable = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b127\.\d+\.\d+\.`), "127.NETWORK."},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h))+\b`), "DURATION"},
	{regexp.MustCompile(`etcd-snapshot-[0-9A-Za-z-]+`), "etcd-snapshot-NAME"},
	{regexp.MustCompile(`\[id=[^\]]*\]`), "[id=ID]"},
	{regexp.MustCompile(`\s+`), " "},
}

// sameLine compares lines without what each run has others of.
func sameLine(a, b string) bool {
	for _, v := range variable {
		a, b = v.pattern.ReplaceAllString(a, v.same), v.pattern.ReplaceAllString(b, v.same)
	}

	return strings.TrimSpace(a) == strings.TrimSpace(b)
}

// network is the first part of addresses. The page has the same one everywhere.
var network = regexp.MustCompile(`\b127\.\d+\.\d+\.`)

// shown is a line as the page shows it.
func shown(line string) string {
	return strings.TrimRight(network.ReplaceAllString(line, "127.45.144."), " ")
}
