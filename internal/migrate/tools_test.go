package migrate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// tools are the commands that write machine configurations, and the files that they write, by the name of a machine.
var tools = map[string]struct {
	command []string
	file    string
}{
	"talhelper": {[]string{"genconfig", "--offline-mode", "--no-gitignore"}, "clusterconfig/prod-%s.yaml"},
	"topf":      {[]string{"render"}, "output/%s.yaml"},
}

// The readers make what the tools themselves write, which are the programs of `tools/testbed/build foreign`.
func TestReaders_makeWhatTheProgramWrites(t *testing.T) {
	testenv.BeforeRelease(t, "TestReaders_makeWhatTheToolMakes")

	for tool, versions := range recorded {
		for _, version := range versions {
			t.Run(tool+version, func(t *testing.T) {
				options := copied(t, tool, version, nil)
				runs(t, tool, version, options.Folder)

				found, err := Readers[tool](options)
				if err != nil {
					t.Fatal(err)
				}

				for _, m := range found.Machines {
					sameAsRecorded(t, m, filepath.Join(options.Folder, fmt.Sprintf(tools[tool].file, m.Name)))
				}
			})
		}
	}
}

// From Talos 1.14 the files of the tool are read.
func TestReaders_readWhatTheProgramWrites(t *testing.T) {
	testenv.BeforeRelease(t, "TestReaders_takeWrittenConfigurations")

	for tool, program := range tools {
		t.Run(tool, func(t *testing.T) {
			options := copied(t, tool, "v1.14.0", nil)
			options.Configurations = filepath.Join(options.Folder, filepath.Dir(program.file))
			runs(t, tool, "v1.14.0", options.Folder)

			found, err := Readers[tool](options)
			if err != nil {
				t.Fatal(err)
			}

			for _, m := range found.Machines {
				if _, err := machineconfig.Documents(m.Config); err != nil {
					t.Errorf("the configuration of %s is not read: %v", m.Name, err)
				}
			}
		})
	}
}

// runs runs a tool in a folder with its files, or skips the test when it is not built.
func runs(t *testing.T, tool, version, folder string) {
	t.Helper()

	program := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), tool)
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is missing: `tools/testbed/build foreign` builds it from its source", tool)
	}

	command := exec.CommandContext(t.Context(), program, tools[tool].command...)
	command.Dir, command.Env = folder, append(os.Environ(), "TALOS_VERSION="+version)

	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, output)
	}
}
