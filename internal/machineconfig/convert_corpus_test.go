package machineconfig

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"golang.org/x/tools/txtar"
)

// corpusPatch is a patch in the form of an older contract. It begins with comments:
//
//	# roles: worker     the machines that get it; both by default
//	# from: v1.11       its contract; v1.13 by default
//	# refused: path     what cannot be converted
//	# otherwise: why    why its readings differ though its effect does not, so that only the result is validated
type corpusPatch struct {
	name, text, from, refused, otherwise string
	roles                                []Role
}

func convertCorpus(t *testing.T) (all []corpusPatch) {
	t.Helper()

	archives, err := filepath.Glob("testdata/convert/*.txtar")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range archives {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}

		for _, file := range txtar.Parse(content).Files {
			all = append(all, readCorpusPatch(strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+file.Name, string(file.Data)))
		}
	}

	return all
}

func readCorpusPatch(name, text string) corpusPatch {
	patch := corpusPatch{name: name, text: text, from: "v1.13", roles: []Role{ControlPlane, Worker}}

	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() && strings.HasPrefix(lines.Text(), "# ") {
		key, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "# "), ": ")

		switch key {
		case "roles":
			patch.roles = []Role{Role(value)}
		case "from":
			patch.from = value
		case "refused":
			patch.refused = value
		case "otherwise":
			patch.otherwise = value
		}
	}

	return patch
}

// Patches as users have them are converted: both forms are valid for machines of Talos 1.14, and have the same effect.
func TestConvertPatches_corpus(t *testing.T) {
	t.Parallel()

	corpus := convertCorpus(t)
	if len(corpus) < 80 {
		t.Fatalf("only %d patches", len(corpus))
	}

	for _, patch := range corpus {
		for _, role := range patch.roles {
			t.Run(patch.name+"/"+string(role), func(t *testing.T) {
				t.Parallel()
				convertsOne(t, patch, role)
			})
		}
	}
}

func convertsOne(t *testing.T, patch corpusPatch, role Role) {
	t.Helper()

	converted, err := ConvertPatches([]string{patch.text}, role, patch.from, documentContract)
	if patch.refused != "" {
		if err == nil || !strings.Contains(err.Error(), "found "+patch.refused) {
			t.Errorf("converted to %q, %v; it must be refused for %s", converted.Patches, err, patch.refused)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	old := validEffects(t, patch.from, role, patch.text)
	updated := validEffects(t, documentContract, role, converted.Patches...)
	baseOld, baseNew := validEffects(t, patch.from, role), validEffects(t, documentContract, role)

	if found := differences(baseOld, old, baseNew, updated); len(found) > 0 != (patch.otherwise != "") {
		t.Errorf("it became\n%s\n%s", converted.Patches[0], strings.Join(found, "\n"))
	}

	again, err := ConvertPatches(converted.Patches, role, documentContract, documentContract)
	if err != nil || !slices.Equal(again.Patches, converted.Patches) {
		t.Errorf("converted again: %q, %v; first: %q", again.Patches, err, converted.Patches)
	}
}

// validEffects are the readings of a configuration that talosop and the machinery library accept.
func validEffects(t *testing.T, contract string, role Role, patches ...string) effects {
	t.Helper()

	c := testCluster(contract)
	c.Patches = patches

	provider, err := configloader.NewFromBytes(generated(t, c, testMachine(role)).Bytes)
	if err != nil {
		t.Fatal(err)
	}

	return effectsOf(provider)
}

// A machine of Talos 1.14 that moves to the contract with converted patches reboots for what the contract adds, and not
// for what patches have.
func TestConvertPatches_addsNoReboots(t *testing.T) {
	t.Parallel()

	for _, patch := range convertCorpus(t) {
		if patch.refused != "" {
			continue
		}

		for _, role := range patch.roles {
			converted, err := ConvertPatches([]string{patch.text}, role, patch.from, documentContract)
			if err != nil {
				t.Fatalf("%s: %v", patch.name, err)
			}

			got := reboots(t, patch.from, role, patch.text, converted.Patches[0])
			if want := reboots(t, patch.from, role, "", ""); got != want {
				t.Errorf("%s on a %s reboots for %s, and without patches for %s", patch.name, role, got, want)
			}
		}
	}

	for _, role := range []Role{ControlPlane, Worker} {
		const want = "[SecurityProfileConfig VolumeConfig/EPHEMERAL]"
		if got := reboots(t, "v1.13", role, "", ""); got != want {
			t.Errorf("a %s reboots for %s, want %s", role, got, want)
		}
	}
}

// reboots are the fields for which a machine of Talos 1.14 reboots when it moves to the documents, and when it goes back.
func reboots(t *testing.T, from string, role Role, patch, converted string) string {
	t.Helper()

	was, is := testCluster(from), testCluster(documentContract)
	was.Patches, is.Patches = []string{patch}, []string{converted}

	before, after := generated(t, was, testMachine(role)).Bytes, generated(t, is, testMachine(role)).Bytes

	_, fields, err := NeedsReboot(before, after, "v1.14.1")
	_, back, backErr := NeedsReboot(after, before, "v1.14.1")

	slices.Sort(fields)
	slices.Sort(back)

	if err != nil || backErr != nil || !slices.Equal(fields, back) {
		t.Errorf("it reboots for %v (%v), and back for %v (%v)", fields, err, back, backErr)
	}

	return fmt.Sprint(fields)
}

// Without what the contract adds, no machine reboots.
func TestConvertPatches_moveWithoutReboots(t *testing.T) {
	t.Parallel()

	for _, role := range []Role{ControlPlane, Worker} {
		got := reboots(t, "v1.13", role, "", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n$patch: delete\n"+
			"---\napiVersion: v1alpha1\nkind: SecurityProfileConfig\nworkloadIsolation: false\n")
		if got != "[]" {
			t.Errorf("a %s reboots for %s", role, got)
		}
	}
}
