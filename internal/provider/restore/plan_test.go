package restore_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A snapshot whose name identifies its cluster is refused for any other, as soon as the secrets are known. An
// encrypted one needs its decryption key.
func TestRestore_refusesASnapshotOfAnotherCluster(t *testing.T) {
	t.Parallel()

	own, err := pki.Parse([]byte(tftest.Bundle()))
	if err != nil {
		t.Fatal(err)
	}

	key := func(mark, suffix string) string {
		return "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-" + mark + "-abcdef.db" + suffix
	}

	opened := func(config tftest.Config, name string, value any) tftest.Config {
		return tftest.With(config, value, "restore_from", name)
	}

	const (
		atKey      = `AttributeName("restore_from").AttributeName("s3").AttributeName("key")`
		foreign    = "0123456789abcdef"
		identity   = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"
		list       = `AttributeName("restore_from").AttributeName("identities_wo")`
		identities = list + `.ElementKeyInt(0)`
		passphrase = `AttributeName("restore_from").AttributeName("passphrase_wo")`
	)

	for name, test := range map[string]struct {
		config   tftest.Config
		At, says string
	}{
		"of this cluster": {config: tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".zst"))},
		"of another":      {tftest.RestoringFrom(tftest.BaseCluster(), key(foreign, "")), atKey, "has the mark " + foreign},
		"of unknown secrets": {config: tftest.RestoringFrom(tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "secrets"),
			key(foreign, ""))},
		"a sum of something else": {
			opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), "")), "sha256", "md5:abc"),
			`AttributeName("restore_from").AttributeName("sha256")`, "64 hexadecimal digits",
		},
		"a sum": {config: opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), "")), "sha256",
			strings.Repeat("aB", 32))},
		"an empty passphrase": {opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "passphrase_wo", ""),
			passphrase,
			"Found an empty string"},
		"no identity": {opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "identities_wo", []any{}), list,
			"Found an empty list"},
		"with an identity": {config: opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "identities_wo",
			[]any{identity})},
		"with a file of one": {config: opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "identities_wo",
			[]any{"# created: today\n" + identity + "\n"})},
		"with a recipient": {opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "identities_wo",
			[]any{"age1abc"}),
			identities, "is a public key"},
		"with a passphrase": {config: opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "passphrase_wo",
			"correct horse")},
		"with an unknown one": {config: opened(tftest.RestoringFrom(tftest.BaseCluster(), key(own.Mark(), ".age")), "passphrase_wo",
			tftest.Unknown{})},
	} {
		got := tftest.Validate(t, "talosop_cluster", test.config)

		switch {
		case test.says == "" && len(got) > 0:
			t.Errorf("%s: %s", name, tftest.Show(got))
		case test.says != "" && (len(got) != 1 || got[0].Attribute.String() != test.At ||
			!strings.Contains(got[0].Detail, test.says)):
			t.Errorf("%s: want %q at %s, got %s", name, test.says, test.At, tftest.Show(got))
		}
	}

	refused := tftest.Plan(t, "talosop_control_plane", nil,
		tftest.ValueOf(t, tftest.TypeOf(t, "talosop_control_plane"), tftest.RestoringFrom(tftest.BaseControlPlane(),
			key(foreign, ""))))
	if len(refused.Diagnostics) != 1 || refused.Diagnostics[0].Attribute.String() != atKey {
		t.Errorf("a plan of a control plane from the snapshot of another cluster says %s", tftest.Show(refused.Diagnostics))
	}
}

// The plan names the temporary file of the database in clear text.
func TestRestore_namesItsTemporaryFile(t *testing.T) {
	t.Parallel()

	attribute := restore.Attribute()
	if !strings.Contains(attribute.MarkdownDescription, "`TMPDIR`") {
		t.Errorf("restore_from says %q", attribute.MarkdownDescription)
	}
}

// Exactly one source is given.
func TestRestore_takesExactlyOneSource(t *testing.T) {
	t.Parallel()

	for name, from := range map[string]tftest.Config{
		"none": {}, "two": {"s3": tftest.Config{"bucket": "backups", "key": "a.db"}, "file": tftest.Config{"path": "a.db"}},
	} {
		if got := tftest.Validate(t, "talosop_cluster",
			tftest.With(tftest.BaseCluster(), from, "restore_from")); len(got) != 1 ||
			!strings.Contains(tftest.Show(got), "[backup_location] Invalid location: restore_from.s3") {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}
	}
}
