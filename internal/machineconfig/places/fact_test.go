package places

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

func TestFact_coversPathsOfItsForms(t *testing.T) {
	t.Parallel()

	files := Fact{Main: in("", "machine.files.content"), Document: in("EtcFileConfig", "contents")}
	whole := Fact{Document: in("SysctlConfig", "")}

	for _, test := range []struct {
		fact Fact
		kind string
		path fieldpath.Path
		want bool
	}{
		{files, "", fieldpath.Path{"machine", "files", 3, "content"}, true},
		{files, "", fieldpath.Path{"machine", "files", 3, "content", "more", 0}, true},
		{files, "", fieldpath.Path{"machine", "files", 3, "path"}, false},
		{files, "", fieldpath.Path{"machine", "files"}, false},
		{files, "EtcFileConfig", fieldpath.Path{"contents"}, true},
		{files, "EtcFileConfig", fieldpath.Path{"machine", "files", 0, "content"}, false},
		{files, "OtherConfig", fieldpath.Path{"contents"}, false},
		{whole, "SysctlConfig", nil, true},
		{whole, "SysctlConfig", fieldpath.Path{"params", "a.b"}, true},
		{whole, "", nil, false},
	} {
		if got := test.fact.Covers(test.kind, test.path); got != test.want {
			t.Errorf("%v at %s in %q: %t", test.fact, test.path, test.kind, got)
		}
	}
}

func TestFact_isInItsDocumentWhereThatIsThere(t *testing.T) {
	t.Parallel()

	for kind, want := range map[string]string{
		NodeLabels.Document.Kind: "KubeNodeConfig labels", "OtherConfig": "machine.nodeLabels", "": "machine.nodeLabels",
	} {
		if got := NodeLabels.In(func(has string) bool { return has == kind }).String(); got != want {
			t.Errorf("beside %q labels are in %s, want %s", kind, got, want)
		}
	}
}
