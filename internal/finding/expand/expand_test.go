package expand_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/finding/expand"
)

func catalog() (*finding.Catalog, finding.Message) {
	messages := finding.NewCatalog("Test")
	messages.Error("other", "Unsupported change of {{.name}}", "What.", "Next.")

	return messages, messages.Warning("reboots", "Machines of {{.cluster}} reboot",
		`{{.machines}} {{plural .machines "reboots" "reboot"}}{{if .drained}} after a drain{{end}}.`,
		"{{if .window}}Not before {{quote .window}}.{{end}}", "Lost:{{bullets .lost}}", "Apply.")
}

func TestRecognizer_readsWhatAMessagePrints(t *testing.T) {
	t.Parallel()

	messages, message := catalog()

	r, err := expand.NewRecognizer(messages)
	if err != nil {
		t.Fatal(err)
	}

	for _, window := range []string{"", "noon"} {
		printed := message.With(finding.Args{"cluster": "prod", "machines": []string{"cp-1", "cp-2"}, "drained": window == "",
			"window": window, "lost": []string{"a", "b"}})
		code, args := r.Read(printed.Severity, printed.Summary, printed.Detail)
		want := map[string]string{
			"cluster": "prod", "machines": "cp-1 and cp-2", "window": window, "lost": "\n  - a\n  - b",
		}

		if diff := cmp.Diff(want, args); code != "reboots" || diff != "" {
			t.Errorf("read %q: %s", code, diff)
		}
	}

	if code, _ := r.Read(finding.Error, "Unable to apply", "Next."); code != "" {
		t.Errorf("read %q of a foreign text", code)
	}
}

// A CLI wraps lines and draws a border.
func TestPattern_matchesWrappedLines(t *testing.T) {
	t.Parallel()

	_, message := catalog()

	pattern, err := expand.Pattern(message)
	if err != nil {
		t.Fatal(err)
	}

	const printed = "╷\n│ Warning: Machines of prod\n│ reboot\n│ \n│ cp-1 reboots after\n│ a drain. Lost:\n│   - a\n│ Apply.\n╵\n"
	if !pattern.MatchString(printed) {
		t.Errorf("%s does not match %s", pattern, printed)
	}
}

// A report stands between the summary of a message and what its detail says to do next.
func TestRecognizer_readsReports(t *testing.T) {
	t.Parallel()

	messages := finding.NewCatalog("Test")
	message := messages.Error("update_failed", "Unable to update {{.cluster}}", "Correct {{.remedy}}.", "Then apply again.")

	r, err := expand.NewRecognizer(messages)
	if err != nil {
		t.Fatal(err)
	}

	printed := message.Report(finding.Path{}, finding.Args{"cluster": "prod", "remedy": "the address"}, finding.Report{
		Cause: []string{"no answer", "no route"}, Now: []string{"cp-1: running"},
	})
	code, args := r.Read(printed.Severity, printed.Summary, printed.Detail)

	if diff := cmp.Diff(map[string]string{"cluster": "prod", "remedy": "the address"}, args); code != "update_failed" || diff != "" {
		t.Errorf("read %q: %s", code, diff)
	}
}

// A page shows both texts of a condition.
func TestTemplate_showsBothBranches(t *testing.T) {
	t.Parallel()

	same := func(text string) string { return text }

	got, err := expand.Template("It {{if .pods}}restarts{{else}}reboots{{end}}.", same, nil, nil)
	if want := "It restarts or reboots."; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// What two messages may print is of the more specific one.
func TestRecognizer_prefersTheMoreSpecificMessage(t *testing.T) {
	t.Parallel()

	messages := finding.NewCatalog("Test")
	messages.Error("create_failed", "Unable to create {{.object}}", "{{.remedy}}", "Apply again.")
	owned := messages.Error("owned_twice", "Unable to create {{.object}}", "Two resources own it.", "Apply again.")

	r, err := expand.NewRecognizer(messages)
	if err != nil {
		t.Fatal(err)
	}

	printed := owned.With(finding.Args{"object": "addon"})
	if code, _ := r.Read(printed.Severity, printed.Summary, printed.Detail); code != "owned_twice" {
		t.Errorf("read %q", code)
	}
}

// What a message prints under a condition makes it no more specific.
func TestRecognizer_prefersTheSpecificMessage(t *testing.T) {
	t.Parallel()

	messages := finding.NewCatalog("Test")
	messages.Error("any", "Invalid {{.what}}", "Found {{.found}}.{{if .more}} This is a long text about more of it.{{end}}")
	specific := messages.Error("port", "Invalid {{.what}}", "Found {{.found}}. Allowed: 1 to 65535.")

	r, err := expand.NewRecognizer(messages)
	if err != nil {
		t.Fatal(err)
	}

	printed := specific.With(finding.Args{"what": "port", "found": "0"})
	if code, _ := r.Read(printed.Severity, printed.Summary, printed.Detail); code != "port" {
		t.Errorf("read %q", code)
	}
}
