package finding

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// Catalog has the messages of one concept. Each package that shows errors or warnings has one in its messages.go, so
// that the text of a message has one place, and its code can be compared in tests.
type Catalog struct {
	concept  string
	messages []Message
}

// NewCatalog returns an empty catalog. The concept is the title of its messages in the reference page.
func NewCatalog(concept string) *Catalog { return &Catalog{concept: concept} }

// Concept is the title of the messages.
func (c *Catalog) Concept() string { return c.concept }

// Messages are the messages of a catalog, in the order of their definition.
func (c *Catalog) Messages() []Message { return c.messages }

// Message is the template of an error or a warning. Summary and Detail are texts of package text/template with named
// arguments. A list of names prints as "a, b and c". The templates have these functions:
//
//   - plural LIST ONE MANY: the form that fits the number of names in a list, or a number
//   - brief LIST: "a, b and 7 more"
//   - quote VALUE: the value in quotation marks, or each of a list
//   - bullets LIST: each text of a list on its own line
//
// The argument at is the attribute of the finding, as a configuration writes it.
type Message struct {
	Code     string
	Severity Severity
	Summary  string
	// Detail is what happened to which machine or setting, why, and what to do next: whole sentences. A part that
	// renders to nothing is left out.
	Detail []string
	// invalid is true for an error about a value of the configuration.
	invalid bool
}

// Error adds the message of an error to a catalog.
func (c *Catalog) Error(code, summary string, detail ...string) Message {
	return c.add(Message{Code: code, Severity: Error, Summary: summary, Detail: detail})
}

// Warning adds the message of a warning to a catalog.
func (c *Catalog) Warning(code, summary string, detail ...string) Message {
	return c.add(Message{Code: code, Severity: Warning, Summary: summary, Detail: detail})
}

// Invalid adds the message of an error about a value of the configuration: what was found, what is allowed, and what
// to do. List.Shared shows such errors of several machines as one.
func (c *Catalog) Invalid(code, found, allowed, next string) Message {
	return c.add(Message{Code: code, Severity: Error, Summary: invalidSummary + "{{.at}}",
		Detail: []string{found, allowed, next}, invalid: true})
}

const invalidSummary = "Invalid "

func (c *Catalog) add(m Message) Message {
	c.messages = append(c.messages, m)

	return m
}

var functions = template.FuncMap{
	"plural": plural, "brief": brief, "quote": quote, "bullets": bullets,
}

// Parse reads the text of a message. Only a message that is shown is parsed, because a start of the provider shows
// none of most.
func Parse(text string) (*template.Template, error) {
	return template.New("message").Option("missingkey=error").Funcs(functions).Parse(text)
}

// With is the finding about a whole resource.
func (m Message) With(args Args) Finding { return m.At(Path{}, args) }

// At is the finding about an attribute. A wrong template, and arguments that lack a name of it, make it an internal
// error of the provider.
func (m Message) At(at Path, args Args) Finding {
	printed := map[string]any{"at": at.String()}
	for name, value := range args {
		printed[name] = value

		if list, ok := value.([]string); ok {
			printed[name] = names(list)
		}
	}

	summary, err := render(m.Summary, printed)

	var parts []string

	for _, part := range m.Detail {
		text, failed := render(part, printed)
		parts, err = append(parts, text), errors.Join(err, failed)
	}

	if err != nil {
		return Bug(err.Error())
	}

	f := Finding{
		Code: m.Code, Args: args, Severity: m.Severity, At: at, Summary: summary, Detail: paragraphs(parts),
	}
	if m.invalid {
		f.Found, f.Fix = parts[0], paragraphs(parts[1:])
	}

	return f
}

// Report is the finding about work on machines. The report says what was attempted, and what the result is; the detail
// of the message says what to do next.
func (m Message) Report(at Path, args Args, r Report) Finding {
	f := m.At(at, args)
	if f.Detail != "" {
		r.Next = f.Detail
	}

	f.Detail = r.String()

	return f
}

func render(text string, args map[string]any) (string, error) {
	parsed, err := Parse(text)
	if err != nil {
		return "", err
	}

	var b bytes.Buffer

	err = parsed.Execute(&b, args)

	return b.String(), err
}

// paragraphs joins sentences with spaces. What follows a list of bullets begins a line.
func paragraphs(parts []string) string {
	var b strings.Builder

	afterBullets := false

	for _, part := range NonEmpty(parts...) {
		switch {
		case b.Len() == 0:
		case afterBullets:
			b.WriteString("\n")
		default:
			b.WriteString(" ")
		}

		b.WriteString(part)

		afterBullets = strings.Contains(part, bullet)
	}

	return b.String()
}

// names are the names of a list argument.
type names []string

func (n names) String() string { return Describe(n) }

// bullets lists texts, one on each line.
func bullets(list names) string {
	var b strings.Builder

	for _, text := range list {
		b.WriteString(bullet + text)
	}

	return b.String()
}

func quote(v any) string {
	list, ok := v.(names)
	if !ok {
		return Quote(fmt.Sprint(v))
	}

	quoted := make([]string, 0, len(list))
	for _, name := range list {
		quoted = append(quoted, Quote(name))
	}

	return Describe(quoted)
}

func brief(list names) string { return Briefly(list) }

// plural chooses a form by the number of names in a list, or by a number.
func plural(of any, one, many string) (string, error) {
	switch of := of.(type) {
	case names:
		return Verb(of, one, many), nil
	case int:
		return Verb(make([]string, of), one, many), nil
	default:
		return "", fmt.Errorf("plural of a %T", of)
	}
}
