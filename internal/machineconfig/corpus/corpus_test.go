package corpus

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

var reasons = map[string]error{
	"not-yaml": machineconfig.ErrNotYAML, "not-patch": machineconfig.ErrNotPatch,
	"multi-document": machineconfig.ErrMultiDocument, "unknown-field": machineconfig.ErrUnknownField,
	"invalid": machineconfig.ErrInvalidConfig,
}

// each runs a check for every input, contract and role.
func each(t *testing.T, check func(t *testing.T, i Input, contract string, role machineconfig.Role, v Verdict)) {
	t.Helper()

	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}

	verdicts, err := Verdicts()
	if err != nil {
		t.Fatal(err)
	}

	if len(all) < 60 {
		t.Errorf("only %d inputs", len(all))
	}

	used := 0

	for _, i := range all {
		for _, contract := range Contracts() {
			for _, role := range i.Roles {
				verdict, ok := verdicts[Key(i, contract, role)]
				if !ok {
					t.Errorf("%s has no verdict: run make corpus", Key(i, contract, role))
				}

				used++

				check(t, i, contract, role, verdict)
			}
		}
	}

	if used != len(verdicts) {
		t.Errorf("%d verdicts of %d are about no input: run make corpus", len(verdicts)-used, len(verdicts))
	}
}

// patched generates the configuration of a machine with and without a patch.
func patched(
	t *testing.T, i Input, contract string, role machineconfig.Role,
) (base, with machineconfig.Config, err error) {
	t.Helper()

	cluster, m := Settings(contract, role)

	generator, err := machineconfig.NewChecker(cluster)
	if err != nil {
		t.Fatal(err)
	}

	if base, err = generator.Machine(m); err != nil {
		t.Fatal(err)
	}

	m.Patches = []string{i.PatchFor(contract)}
	with, err = generator.Machine(m)

	return base, with, err
}

// Each input is taken or refused as it says, which is as machinery of the release decides, unless the input says why not;
// and the release takes what talosop sends.
func TestInputs_areDecidedAsTalosDoes(t *testing.T) {
	each(t, func(t *testing.T, i Input, contract string, role machineconfig.Role, v Verdict) {
		key := Key(i, contract, role)
		_, _, err := patched(t, i, contract, role)
		want, refused := i.Refused[contract]

		switch mistakes := machineconfig.FieldErrors(err); {
		case refused != (err != nil):
			t.Errorf("%s: refused %t, and talosop says: %v", key, refused, err)
		case err == nil && v.Sent != "":
			t.Errorf("%s: the release refuses what talosop sends: %s", key, v.Sent)
		case err == nil:
		case len(mistakes) != 1 || !errors.Is(err, reasons[want.Reason]) && want.Field == "patch" ||
			strings.Replace(mistakes[0].Field, "machine.patches[0]", "patch", 1) != want.Field:
			t.Errorf("%s: %v at %s, and talosop says: %v", key, want.Reason, want.Field, err)
		}

		_, otherwise := i.Otherwise[contract]
		if isRefused := v.Stage != ""; otherwise == (isRefused == refused) {
			t.Errorf("%s: refused %t by talosop, %t by the release (%s: %s), and otherwise is %t", key, refused, isRefused,
				v.Stage, v.Reason, otherwise)
		}
	})
}

// A merge makes of a configuration and a patch what machinery of the release makes of them.
func TestMerge_isThatOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, i Input, contract string, role machineconfig.Role, v Verdict) {
		key := Key(i, contract, role)
		base, _, _ := patched(t, i, contract, role)
		_, otherwise := i.Otherwise[contract]

		merged, err := machineconfig.Merge(string(base.Bytes), []string{i.PatchFor(contract)})
		if isMerged := v.Stage == "" || v.Stage == ValidateStage; isMerged != (err == nil) && !otherwise {
			t.Errorf("%s: merged %t by the release (%s: %s), and talosop says: %v", key, isMerged, v.Stage, v.Reason, err)
		} else if err != nil || !isMerged {
			return
		}

		if got := changesOf(t, string(base.Bytes), merged); !slices.Equal(got, v.Changes) {
			t.Errorf("%s: the merge changes\n%s\nand that of the release\n%s", key, strings.Join(got, "\n"),
				strings.Join(v.Changes, "\n"))
		}

		if again, err := machineconfig.Merge(merged, nil); err != nil || again != merged {
			t.Errorf("%s: merged again: %v\n%s\nwas\n%s", key, err, again, merged)
		}
	})
}

func changesOf(t *testing.T, before, after string) []string {
	t.Helper()

	changes, err := machineconfig.DiffWhole(before, after)
	if err != nil {
		t.Fatal(err)
	}

	var lines []string
	for _, change := range changes {
		lines = append(lines, change.String())
	}

	return lines
}
