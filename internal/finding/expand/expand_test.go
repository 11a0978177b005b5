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
