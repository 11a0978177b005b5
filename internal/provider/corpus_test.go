package provider_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/corpus"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// ofCorpus are the inputs for machines of a contract that pick selects.
func ofCorpus(t *testing.T, pick func(corpus.Input) bool) []corpus.Input {
	t.Helper()

	all, err := corpus.Load()
	tftest.Must(t, err)

	return slices.DeleteFunc(all, func(i corpus.Input) bool { return !pick(i) })
}

// takes reports whether machines of a role and a contract accept an input.
func takes(i corpus.Input, contract string, role machineconfig.Role) bool {
	_, refused := i.Refused[contract]

	return !refused && slices.Contains(i.Roles, role)
}

// The functions and the data source decide on every input of the corpus as machineconfig does, which is compared
// with Talos there.
func TestCorpus_functionsAndDataSource(t *testing.T) {
	t.Parallel()

	// A merge knows no contract: on every change the newest and the oldest stand for all.
	bases, contracts := map[string]string{}, []string{"v1.11", "v1.14"}
	if testenv.Everything() {
		contracts = corpus.Contracts()
	}

	for _, contract := range contracts {
		for _, role := range []machineconfig.Role{machineconfig.ControlPlane, machineconfig.Worker} {
			bases[contract+string(role)], _ = corpusConfig(t, contract, role, "")
		}
	}

	for _, input := range ofCorpus(t, func(corpus.Input) bool { return true }) {
		for _, contract := range corpus.Contracts() {
			text, version := input.PatchFor(contract), corpus.TalosVersion(contract)

			talos, err := machineconfig.ParseTalosVersion(version)
			tftest.Must(t, err)

			wantErr := machineconfig.ValidatePatchFor(text, &talos)
			if _, err := called(t, "validate_patch", text, version); (err == nil) != (wantErr == nil) {
				t.Errorf("%s %s: validate_patch says %v, want %v", input.Name, contract, err, wantErr)
			}

			if base, ok := bases[contract+string(input.Roles[0])]; ok {
				want, wantErr := machineconfig.Merge(base, []string{text})
				if got, err := called(t, "merge_patches", base, text); got != want || (err == nil) != (wantErr == nil) {
					t.Errorf("%s %s: merge_patches says %v, want %v", input.Name, contract, err, wantErr)
				}
			}

			for _, role := range input.Roles {
				_, mistake := corpusConfig(t, contract, role, text)
				if wanted := mistakeAt(input, contract); mistake != wanted {
					t.Errorf("%s: talosop_machine_config has a mistake at %q, want %q", corpus.Key(input, contract, role), mistake,
						wanted)
				}
			}
		}
	}
}

// mistakeAt is the argument of talosop_machine_config with the mistake of an input; empty without a mistake.
func mistakeAt(i corpus.Input, contract string) string {
	switch mistake, refused := i.Refused[contract]; {
	case !refused:
		return ""
	case mistake.Field == "patch":
		return `AttributeName("config_patches").ElementKeyInt(0)`
	default:
		return `AttributeName("install").AttributeName("disk")`
	}
}

// called is the result of a function as text.
func called(t *testing.T, name string, arguments ...string) (string, error) {
	t.Helper()

	request := &tfprotov6.CallFunctionRequest{Name: name}

	for _, argument := range arguments {
		value, err := tfprotov6.NewDynamicValue(tftypes.String, tftypes.NewValue(tftypes.String, argument))
		tftest.Must(t, err)

		request.Arguments = append(request.Arguments, &value)
	}

	response, err := tftest.Server(t).CallFunction(t.Context(), request)
	tftest.Must(t, err)

	if response.Error != nil {
		return "", errors.New(response.Error.Text)
	}

	typ := tftypes.Type(tftypes.String)
	if name == "validate_patch" {
		typ = tftypes.Bool
	}

	value, err := response.Result.Unmarshal(typ)
	tftest.Must(t, err)

	var text string
	if typ.Is(tftypes.String) {
		tftest.Must(t, value.As(&text))
	}

	return text, nil
}

// corpusConfig is the configuration of talosop_machine_config with a patch at the argument of the mistake.
func corpusConfig(t *testing.T, contract string, role machineconfig.Role, patch string) (config, mistake string) {
	t.Helper()

	data := tftest.With(tftest.BaseMachineConfig(), contract, "cluster", "version_contract")
	data["talos_version"], data["role"] = corpus.TalosVersion(contract), string(role)
	data = tftest.With(data, corpus.KubernetesVersion, "cluster", "kubernetes_version")
	data["config_patches"] = []any{patch}

	typ, server := tftest.Schemas(t).DataSourceSchemas["talosop_machine_config"].ValueType(), tftest.Server(t)
	given := tftest.Dynamic(t, tftest.ValueOf(t, typ, data))

	valid, err := server.ValidateDataResourceConfig(t.Context(),
		&tfprotov6.ValidateDataResourceConfigRequest{TypeName: "talosop_machine_config", Config: given})
	tftest.Must(t, err)

	if mistake := firstMistake(valid.Diagnostics); mistake != "" {
		return "", mistake
	}

	read, err := server.ReadDataSource(t.Context(),
		&tfprotov6.ReadDataSourceRequest{TypeName: "talosop_machine_config", Config: given})
	tftest.Must(t, err)

	if mistake := firstMistake(read.Diagnostics); mistake != "" {
		return "", mistake
	}

	state, err := read.State.Unmarshal(typ)
	tftest.Must(t, err)

	return tftest.TextsIn(t, state, "config")["config"], ""
}

// firstMistake is where the first error is.
func firstMistake(diagnostics []*tfprotov6.Diagnostic) string {
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return fmt.Sprint(d.Attribute)
		}
	}

	return ""
}

// Machines with all compatible inputs are created, and a second plan is empty.
func TestCorpus_isCreated(t *testing.T) {
	t.Parallel()

	for _, contract := range corpus.Contracts() {
		t.Run(contract, func(t *testing.T) {
			t.Parallel()
			createdWith(t, contract, ofCorpus(t, func(i corpus.Input) bool { return i.Alone == "" }))
		})
	}
}

// The same for machines with each of the remaining inputs.
func TestCorpus_isCreatedAlone(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestCorpus_isCreated", "TestInputs_areDecidedAsTalosDoes")

	for _, input := range ofCorpus(t, func(i corpus.Input) bool { return i.Alone != "" }) {
		for _, contract := range corpus.Contracts() {
			// When both have one name, it is that of one machine.
			if input.Roles = input.Roles[:1]; takes(input, contract, input.Roles[0]) {
				t.Run(input.Name+" "+contract, func(t *testing.T) {
					t.Parallel()
					createdWith(t, contract, []corpus.Input{input})
				})
			}
		}
	}
}

// createdWith makes a cluster with patches.
func createdWith(t *testing.T, contract string, inputs []corpus.Input) {
	t.Helper()

	version := corpus.TalosVersion(contract)
	s := sitetest.NewWith(t, sim.Options{TalosVersion: version}, 1, 1)

	config := sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers)
	config["talos_version"], config["kubernetes_version"] = version, corpus.KubernetesVersion
	config["timeouts"] = tftest.Config{"create": "1m"}

	patches := map[machineconfig.Role][]any{}

	for _, i := range inputs {
		for _, role := range i.Roles {
			if takes(i, contract, role) {
				patches[role] = append(patches[role], i.PatchFor(contract))
			}
		}
	}

	config = tftest.With(config, patches[machineconfig.ControlPlane], "control_plane", "config_patches")
	config = tftest.With(config, patches[machineconfig.Worker], "workers", "all", "config_patches")

	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster")
	d.Ready(t, config)
	d.Refresh(t).Must(t)

	if planned := d.Plan(t, config).Must(t); !planned.Value.Equal(d.State) {
		differences, _ := d.State.Diff(planned.Value)
		t.Errorf("the plan after the create is not empty: %v", differences)
	}
}
