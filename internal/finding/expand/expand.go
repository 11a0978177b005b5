// Package expand reads the templates of messages: for the reference page, which shows names in place of arguments, and
// for tests, which recognize what a template printed. The provider itself does not use it.
package expand

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Action is an argument in a template, and what the template makes of it.
type Action struct {
	// Name is the name of the argument.
	Name string
	// Function is empty where the argument prints as it is.
	Function string
	// Forms are the further arguments of the function, such as the two forms of plural.
	Forms []string
}

// Template writes a template with other texts in place of its actions. What stands below a condition is passed to
// optional when that is not nil, and is written as if the condition were true otherwise.
func Template(text string, literal func(string) string, action func(Action) string, optional func(string) string,
) (string, error) {
	parsed, err := finding.Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse template: %w", err)
	}

	w := writer{literal, action, optional}

	return w.list(parsed.Root), nil
}

type writer struct {
	literal  func(string) string
	action   func(Action) string
	optional func(string) string
}

func (w writer) list(list *parse.ListNode) string {
	if list == nil {
		return ""
	}

	var b strings.Builder

	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.TextNode:
			b.WriteString(w.literal(string(node.Text)))
		case *parse.ActionNode:
			b.WriteString(w.action(actionOf(node.Pipe)))
		case *parse.IfNode:
			b.WriteString(w.branches(node.List, node.ElseList))
		case *parse.RangeNode:
			b.WriteString(w.branch(node.List))
		}
	}

	return b.String()
}

// branches are both texts of a condition. Readers of the template see an "or" between them.
func (w writer) branches(list, other *parse.ListNode) string {
	one, two := w.branch(list), w.branch(other)

	switch {
	case w.optional != nil || one == "" || two == "":
		return one + two
	case strings.HasSuffix(one, "."):
		return one + " Or: " + two
	default:
		return one + " or " + two
	}
}

func (w writer) branch(list *parse.ListNode) string {
	text := w.list(list)
	if w.optional == nil || text == "" {
		return text
	}

	return w.optional(text)
}

// actionOf reads {{.name}}, {{function .name}} and {{plural .name "one" "many"}}.
func actionOf(pipe *parse.PipeNode) (a Action) {
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			switch arg := arg.(type) {
			case *parse.FieldNode:
				a.Name = strings.Join(arg.Ident, ".")
			case *parse.IdentifierNode:
				a.Function = arg.Ident
			case *parse.StringNode:
				a.Forms = append(a.Forms, arg.Text)
			}
		}
	}

	return a
}

// space matches the space between two words, where a CLI may wrap a line and draw a border.
const (
	space         = `[\s│╷╵]+`
	optionalSpace = `[\s│╷╵]*`
)

// cliContext matches the lines of the configuration that a CLI prints between summary and detail.
const cliContext = `(?:[\s│╷╵]+(?:with|on) [\s\S]*?)??`

// report matches the sections of a report, after which the detail of its message says what to do next.
const report = `(?:(?:Attempted|Cause|State now):[\s\S]*?Next:)??`

// attribute is what begins each line of an error about several attributes.
const attribute = `(?:- [^\n]*?: )?`

// Pattern matches the text that a message prints, however a CLI wraps it. The first place of each argument is a group
// with its name. A list that a place shortens has none there, because another place has all of it.
func Pattern(m finding.Message) (*regexp.Regexp, error) {
	parts, err := patterns(m)
	if err != nil {
		return nil, err
	}

	parts[0] += cliContext

	return regexp.Compile(strings.Join(parts, optionalSpace))
}

// patterns match what the summary and each part of the detail print.
func patterns(m finding.Message) ([]string, error) {
	printed := map[string]bool{"at": true}

	action := func(a Action) string {
		switch {
		case a.Function == "plural":
			return "(?:" + words(a.Forms[0]) + "|" + words(a.Forms[1]) + ")"
		case a.Function == "brief", printed[a.Name]:
			return `[\s\S]*?`
		}

		printed[a.Name] = true
		group := "(?P<" + a.Name + `>[\s\S]*?)`

		if a.Function == "quote" {
			return `"` + group + `"`
		}

		return group
	}

	optional := func(text string) string { return "(?:" + text + ")?" }

	parts := make([]string, 0, 1+len(m.Detail))

	for _, text := range append([]string{m.Summary}, m.Detail...) {
		part, err := Template(text, words, action, optional)
		if err != nil {
			return nil, err
		}

		parts = append(parts, part)
	}

	if len(parts) > 1 {
		parts[1] = report + optionalSpace + attribute + parts[1]
	}

	return parts, nil
}

// words matches literal text.
func words(text string) string {
	parts := regexp.MustCompile(`\s+`).Split(text, -1)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}

	return strings.Join(parts, space)
}

// Recognizer finds the messages that printed texts.
type Recognizer struct {
	messages []finding.Message
	// whole match a detail that a message printed alone, begins one that has more after it.
	summaries, whole, begins []*regexp.Regexp
}

// More is the argument with what follows a message in its text.
const More = "more"

// NewRecognizer returns one for the messages of catalogs.
func NewRecognizer(catalogs ...*finding.Catalog) (*Recognizer, error) {
	r := &Recognizer{}

	for _, catalog := range catalogs {
		r.messages = append(r.messages, catalog.Messages()...)
	}

	// A message whose arguments may be anything also matches what a more specific one prints.
	slices.SortStableFunc(r.messages, func(a, b finding.Message) int { return literalSize(b) - literalSize(a) })

	for _, message := range r.messages {
		parts, err := patterns(message)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", message.Code, err)
		}

		detail := strings.Join(parts[1:], optionalSpace)
		r.summaries = append(r.summaries, regexp.MustCompile(`^(?:`+parts[0]+`)$`))
		r.whole = append(r.whole, regexp.MustCompile(`^(?:`+detail+`)\s*$`))
		r.begins = append(r.begins, regexp.MustCompile(`^(?:`+detail+`)(?P<`+More+`>\s[\s\S]+)$`))
	}

	return r, nil
}

// literalSize is the number of bytes that each text of a message has: those outside its arguments and conditions.
func literalSize(m finding.Message) int {
	none := func(string) string { return "" }

	text, err := Template(m.Summary+strings.Join(m.Detail, ""), strings.Clone,
		func(Action) string { return "" }, none)
	if err != nil {
		return 0 // patterns reports it
	}

	return len(text)
}

// Read finds the message that printed a summary and a detail: its code, and the arguments as they were printed. The
// code is empty if no message prints that.
func (r *Recognizer) Read(of finding.Severity, summary, detail string) (code string, args map[string]string) {
	for _, details := range [][]*regexp.Regexp{r.whole, r.begins} {
		for i, message := range r.messages {
			if message.Severity != of || !r.summaries[i].MatchString(summary) || !details[i].MatchString(detail) {
				continue
			}

			args = named(r.summaries[i], summary)
			maps.Copy(args, named(details[i], detail))

			return message.Code, args
		}
	}

	return "", nil
}

// named are the groups with names of a pattern that matches a text.
func named(pattern *regexp.Regexp, text string) map[string]string {
	groups, found := map[string]string{}, pattern.FindStringSubmatch(text)

	for group, name := range pattern.SubexpNames() {
		if name != "" {
			groups[name] = found[group]
		}
	}

	return groups
}
