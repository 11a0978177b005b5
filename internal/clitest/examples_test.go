package clitest_test

import (
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

const examples = "../../examples"

const requiredProviders = `terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}
`

// otherProviders are the examples whose other providers are in registries alone: TestAccOtherProviders of internal/provider
// applies the first with what stands in for them, and TestAccExamples_clouds validates the others.
var otherProviders = []string{
	"guides/other-providers", "stacks/vms/aws", "stacks/vms/hetzner", "stacks/vms/libvirt", "stacks/vms/proxmox",
}

// applied are examples that tests of internal/provider apply on every change, which shows more: TestAccExamples_appliedTogether,
// TestAccExamples_testsOfTheModule, TestAccExamples_restoreDrill, TestAccExamples_rehearsal, TestAccExamples_repair.
var applied = []string{
	"modules/cluster", "stacks/air-gapped", "stacks/backup", "stacks/ha", "stacks/machines", "stacks/rehearsal",
	"stacks/repair", "stacks/restore-drill", "stacks/vms", "stacks/vms/stand-in",
}

// passphrase is for the example that encrypts its state: OpenTofu asks for it in an init already.
const passphrase = "TF_VAR_passphrase"

// TestAccExamples_validate holds every example to what its reader will do with it: copy the folder and run a CLI in it.
// Each runs under one of them, always the same; under every one in make test-all.
func TestAccExamples_validate(t *testing.T) {
	folders := exampleFolders(t)
	if len(folders) == 0 {
		t.Fatalf("no examples below %s", examples)
	}

	clis := clitest.All(t)

	for _, folder := range folders {
		name := filepath.ToSlash(folder)
		if slices.Contains(otherProviders, name) || slices.Contains(applied, name) && !testenv.Everything() {
			continue
		}

		chosen := clis
		if !testenv.Everything() {
			chosen = clis[crc32.ChecksumIEEE([]byte(name))%uint32(len(clis)):][:1] //nolint:gosec // there are two
		}

		// Only OpenTofu reads these files.
		if files, err := filepath.Glob(filepath.Join(examples, folder, "*.tofu")); err == nil && len(files) > 0 {
			chosen = []clitest.CLI{clitest.Tofu(t)}
		}

		// No other one knows what an action or a list is.
		if strings.HasPrefix(name, "actions/") || strings.HasPrefix(name, "list-resources/") {
			chosen = []clitest.CLI{clitest.Newest(t)}
		}

		for _, cli := range chosen {
			t.Run(name+" "+cli.Name, func(t *testing.T) {
				t.Parallel()

				w := clitest.NewWorkspace(t, cli).Example(examples, folder)
				w.Setenv(passphrase, "of sixteen characters or more")
				oneImport(t, w, cli)
				addFormer(t, w)
				// Examples of one type leave out what the page of the provider says once.
				if !strings.Contains(w.Read("*.tf"), "required_providers") {
					w.Write("required_providers.tf", requiredProviders)
				}

				w.Init()
				w.MustRun("validate")

				if w.Read("*.tfquery.hcl") != "" {
					w.MustRun("validate", "-query")
				}
			})
		}
	}
}

// addFormer adds a stand-in for providers whose resources a migration only removes from the state. It is installed
// and started, and its schema is not used.
func addFormer(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	for mark, former := range map[string]string{"siderolabs/talos": "siderolabs/talos", "helm_release": "hashicorp/helm"} {
		if strings.Contains(w.Read("*.tf"), mark) {
			w.AddProvider(former, "0.12.0", w.Provider())
		}
	}
}

// oneImport leaves one of several imports of the same resource: by identity where the CLI takes those (Terraform since
// 1.12, and 1.11 is the oldest that tests run under).
func oneImport(t *testing.T, w *clitest.Workspace, cli clitest.CLI) {
	t.Helper()

	byID, byIdentity := filepath.Join(w.Dir, "import-by-string-id.tf"), filepath.Join(w.Dir, "import-by-identity.tf")
	if _, err := os.Stat(byIdentity); err != nil {
		return
	}

	surplus := byID
	if cli.Name == "terraform" {
		surplus = byIdentity
	}

	if err := os.Remove(surplus); err != nil {
		t.Fatal(err)
	}
}

// exampleFolders are the folders below examples that hold configuration, sorted.
func exampleFolders(t *testing.T) []string {
	t.Helper()

	var folders []string

	err := filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if folder, err := filepath.Rel(examples, filepath.Dir(path)); err == nil && strings.HasSuffix(entry.Name(), ".tf") {
			folders = append(folders, folder)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	slices.Sort(folders)

	return slices.Compact(folders)
}
