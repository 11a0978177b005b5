package finding

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessage_rendersItsArguments(t *testing.T) {
	t.Parallel()

	catalog := NewCatalog("Test")
	message := catalog.Warning("reboots", "Machines of {{.cluster}} reboot",
		`{{quote .machines}} {{plural .machines "reboots" "reboot"}}{{if .drained}} after a drain{{end}}.`,
		"{{if .window}}Not before {{quote .window}}.{{end}}",
		"Lost:{{bullets .lost}}",
		"Apply.")

	for _, test := range []struct {
		args Args
		want string
	}{
		{
			Args{"cluster": "prod", "machines": []string{"cp-1"}, "drained": true, "window": "", "lost": []string{"a", "b"}},
			"\"cp-1\" reboots after a drain. Lost:\n  - a\n  - b\nApply.",
		},
		{
			Args{"cluster": "prod", "machines": []string{"cp-1", "cp-2"}, "drained": false, "window": "noon", "lost": []string{"c"}},
			"\"cp-1\" and \"cp-2\" reboot. Not before \"noon\". Lost:\n  - c\nApply.",
		},
	} {
		got := message.At(Root("machines"), test.args)
		want := Finding{
			Code: "reboots", Args: test.args, Severity: Warning, At: Root("machines"),
			Summary: "Machines of prod reboot", Detail: test.want,
		}

		if diff := cmp.Diff(want, got, cmp.Comparer(Path.Equal)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMessage_withoutAnArgumentIsAnInternalError(t *testing.T) {
	t.Parallel()

	message := NewCatalog("Test").Error("code", "Summary {{.cluster}}", "What.", "Next.")

	if got := message.With(Args{"name": "prod"}); got.Code != "internal_error" {
		t.Errorf("got %v, want an internal error", got)
	}
}

func ExampleCatalog() {
	messages := NewCatalog("Clusters")
	silent := messages.Warning("silent", "{{.cluster}} does not answer", "Check {{.machines}}.")

	fmt.Println(silent.With(Args{"cluster": "prod", "machines": []string{"cp-1", "cp-2"}}).Detail)
	// Output: Check cp-1 and cp-2.
}
