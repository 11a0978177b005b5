package tftest

import (
	"regexp"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/finding/expand"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

var recognizer = sync.OnceValue(func() *expand.Recognizer {
	r, err := expand.NewRecognizer(provider.Messages()...)
	if err != nil {
		panic(err)
	}

	return r
})

// address is that of a resource, which tests of several resources put before a summary.
var address = regexp.MustCompile(`^talosop_\S+: `)

// Code is the code of the message that a diagnostic shows, with the arguments as they were printed. It is empty if the
// text is in no catalog.
func Code(d *tfprotov6.Diagnostic) (code string, args map[string]string) {
	severity := finding.Warning
	if d.Severity == tfprotov6.DiagnosticSeverityError {
		severity = finding.Error
	}

	return recognizer().Read(severity, address.ReplaceAllString(d.Summary, ""), d.Detail)
}

// MessageOf is the message with a code.
func MessageOf(t *testing.T, code string) finding.Message {
	t.Helper()

	for _, catalog := range provider.Messages() {
		for _, message := range catalog.Messages() {
			if message.Code == code {
				return message
			}
		}
	}

	t.Fatalf("no message has the code %s", code)

	return finding.Message{}
}
