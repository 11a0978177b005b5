package backupschedule_test

import (
	"os"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/backupschedule"
)

// The guide shows the patch that the error of a forbidden namespace asks for.
func TestTalosAccessPatch_isInTheGuide(t *testing.T) {
	t.Parallel()

	guide, err := os.ReadFile("../../../templates/guides/etcd-backups.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}

	if patch := backupschedule.TalosAccessPatch(backupschedule.DefaultNamespace); !strings.Contains(string(guide), patch) {
		t.Errorf("the guide does not show:\n%s", patch)
	}
}
