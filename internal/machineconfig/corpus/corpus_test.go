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

// made are generators, and what they make without a patch, by contract and role.
var made = map[string]struct {
	*machineconfig.Generator
	base machineconfig.Config
}{}

// patched generates the configuration of a machine with and without a patch.
func patched(
	t *testing.T, i Input, contract string, role machineconfig.Role,
) (base, with machineconfig.Config, err error) {
	t.Helper()

	cluster, m := Settings(contract, role)

	known, ok := made[contract+string(role)]
	if !ok {
		if known.Generator, err = machineconfig.NewChecker(cluster); err != nil {
			t.Fatal(err)
		}

		if known.base, err = known.Machine(m); err != nil {
			t.Fatal(err)
		}

		made[contract+string(role)] = known
	}

	m.Patches = []string{i.PatchFor(contract)}
	with, err = known.Machine(m)

	return known.base, with, err
}

// Each input is taken or refused as it says, which is as machinery of the release decides, unless the input says why
// not; and the release takes what talosop sends.
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
			strings.ReplaceAll(mistakes[0].Field, "machine.patches[0]", "patch") != want.Field:
			t.Errorf("%s: %v at %s, and talosop says: %v", key, want.Reason, want.Field, err)
		}

		_, otherwise := i.Otherwise[contract]
		if isRefused := v.Stage != ""; otherwise == (isRefused == refused) {
			t.Errorf("%s: refused %t by talosop, %t by the release (%s: %s), and otherwise is %t", key, refused, isRefused,
				v.Stage, v.Reason, otherwise)
		}
	})
}

// A merge makes of a configuration and a patch what machinery of the release makes of them. It has no version: what
// older releases do not know is merged, and kinds of none are taken for those of a newer one.
func TestMerge_isThatOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, i Input, contract string, role machineconfig.Role, v Verdict) {
		key := Key(i, contract, role)
		base, _, _ := patched(t, i, contract, role)
		_, otherwise := i.Otherwise[contract]
		isMerged := v.Stage == "" || v.Stage == ValidateStage

		merged, err := machineconfig.Merge(string(base.Bytes), []string{i.PatchFor(contract)})

		switch isKnown := contract == "v1.14" && !strings.Contains(v.Reason, "not registered"); {
		case isMerged && err != nil && !otherwise, !isMerged && err == nil && isKnown && !otherwise:
			t.Errorf("%s: merged %t by the release (%s: %s), and talosop says: %v", key, isMerged, v.Stage, v.Reason, err)
		case !isMerged || err != nil:
			return
		}

		if got := changesOf(t, string(base.Bytes), merged); !slices.Equal(got, v.Changes) {
			t.Errorf("%s: the merge changes\n%s\nand that of the release\n%s", key, strings.Join(got, "\n"),
				strings.Join(v.Changes, "\n"))
		}
	})
}

// A patch by itself is refused where machinery of the release cannot read it, or has several documents for operations.
func TestValidatePatch_isReadAsByTheRelease(t *testing.T) {
	each(t, func(t *testing.T, i Input, contract string, role machineconfig.Role, v Verdict) {
		if _, otherwise := i.Otherwise[contract]; otherwise {
			return
		}

		talos, err := machineconfig.ParseTalosVersion(TalosVersion(contract))
		if err != nil {
			t.Fatal(err)
		}

		err = machineconfig.ValidatePatchFor(i.PatchFor(contract), &talos)

		// What cannot be applied may have reasons in the configuration, or in the patch.
		want := v.Stage == LoadStage || i.Refused[contract].Reason == "multi-document"
		if want != (err != nil) && (want || v.Stage != ApplyStage) {
			t.Errorf("%s: refused %t by the release (%s: %s), and talosop says: %v", Key(i, contract, role), want, v.Stage,
				v.Reason, err)
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
