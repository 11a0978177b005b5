package functions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// call calls a function as the framework does; the last parameter takes the remaining arguments.
func call(t *testing.T, name string, arguments ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()

	for _, construct := range All() {
		f := construct()

		var metadata function.MetadataResponse
		if f.Metadata(t.Context(), function.MetadataRequest{}, &metadata); metadata.Name != name {
			continue
		}

		var definition function.DefinitionResponse

		f.Definition(t.Context(), function.DefinitionRequest{}, &definition)

		if last := definition.Definition.VariadicParameter; last != nil {
			fixed := len(definition.Definition.Parameters)
			rest := arguments[fixed:]

			kinds := make([]attr.Type, len(rest))
			for i := range rest {
				kinds[i] = last.GetType()
			}

			arguments = append(append([]attr.Value{}, arguments[:fixed]...), types.TupleValueMust(kinds, rest))
		}

		result, err := definition.Definition.Return.NewResultData(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		resp := function.RunResponse{Result: result}
		f.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(arguments)}, &resp)

		return resp.Result.Value(), resp.Error
	}

	t.Fatalf("no function is called %s", name)

	return nil, nil
}

func texts(all ...string) []attr.Value {
	values := make([]attr.Value, len(all))
	for i, text := range all {
		values[i] = types.StringValue(text)
	}

	return values
}

func listOf(all ...string) attr.Value { return types.ListValueMust(types.StringType, texts(all...)) }

func options(given map[string]string) attr.Value {
	values := map[string]attr.Value{}
	for name, text := range given {
		values[name] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}

const guestAgent = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

func TestFunctions_give(t *testing.T) {
	t.Parallel()

	const whole = "machine:\n    type: worker\n    token: hunter2\n    sysctls:\n        a: \"1\"\n"

	for _, test := range []struct {
		name      string
		arguments []attr.Value
		want      string
	}{
		{"merge_patches", texts("machine: {sysctls: {a: b}}"), `"machine:\n    sysctls:\n        a: b\n"`},
		{"merge_patches", texts("machine: {sysctls: {a: b}}", "machine: {sysctls: {c: d}}"),
			`"machine:\n    sysctls:\n        a: b\n        c: d\n"`},
		{"validate_patch", texts("machine: {sysctls: {a: b}}", "v1.13.0"), "true"},
		{"validate_patch", texts("machine: {sysctls: {a: b}}", "1.13"), "true"},
		{"validate_patch", []attr.Value{types.StringValue("[{op: remove, path: /machine}]"), types.StringNull()}, "true"},
		{"validate_patch", texts("apiVersion: v1alpha1\nkind: QuantumConfig", "v1.15.0"), "true"},
		{"validate_patch", []attr.Value{types.StringValue("apiVersion: v1alpha1\nkind: ResolverConfig\nhostDNS: {enabled: true}"),
			types.StringNull()}, "true"},
		{"machine_config_diff", texts(whole, strings.ReplaceAll(whole, `"1"`, `"2"`)),
			`[{"action":"changed","after":"\"2\"","before":"\"1\"","document":"v1alpha1","path":"machine.sysctls.a",` +
				`"text":"~ v1alpha1: machine.sysctls.a: \"1\" -> \"2\""}]`},
		{"machine_config_diff", texts(whole, whole), "[]"},
		{"machine_config_diff", []attr.Value{types.StringNull(), types.StringValue("kind: NewConfig\nkey: hunter2\n")},
			`[{"action":"added","after":"(sensitive value)","before":<null>,"document":"NewConfig","path":"key",` +
				`"text":"+ NewConfig: key = (sensitive value)"}]`},
		{"machine_config_diff", texts(whole, strings.ReplaceAll(whole, "hunter2", "hunter3")),
			`[{"action":"changed","after":"(sensitive value)","before":"(sensitive value)","document":"v1alpha1",` +
				`"path":"machine.token","text":"~ v1alpha1: machine.token: (sensitive value) -> (sensitive value)"}]`},
		{"parse_machine_config", texts("machine: {ports: [80, 0.5, true, null, 18446744073709551615]}"),
			`{"v1alpha1":{"machine":{"ports":[80,0.5,true,<null>,1.844674407e+19]}}}`},
		{"parse_machine_config", texts("{}"), `{"v1alpha1":{}}`},
		{"installer_image", []attr.Value{types.StringValue("v1.13.0"), types.StringNull()},
			`"ghcr.io/siderolabs/installer:v1.13.0"`},
		{"installer_image", texts("1.13.0", "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"),
			`"factory.talos.dev/metal-installer/` + guestAgent + `:v1.13.0"`},
		{"installer_image", append(texts("v1.13.0", guestAgent), options(map[string]string{
			"platform": "aws", "secure_boot": "true", "registry": "mirror.test",
		})), `"mirror.test/aws-installer-secureboot/` + guestAgent + `:v1.13.0"`},
		{"installer_image", append(texts("v1.13.0", guestAgent), types.MapNull(types.StringType)),
			`"factory.talos.dev/metal-installer/` + guestAgent + `:v1.13.0"`},
		{"installer_image", append(texts("v1.13.0", guestAgent), types.MapValueMust(types.StringType, map[string]attr.Value{"platform": types.StringNull()})),
			`"factory.talos.dev/metal-installer/` + guestAgent + `:v1.13.0"`},
		{"convert_patches", append([]attr.Value{listOf("machine: {certSANs: [a]}", "machine: {sysctls: {a: b}}", "cluster: {proxy: {mode: ipvs}}")},
			texts("worker", "v1.13", "v1.14")...),
			`{"kept":[{"patch":0,"path":"machine.certSANs","reason":"only the main document has it"}],` +
				`"patches":["machine: {certSANs: [a]}","apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a: b}\n",""],` +
				`"removed":[{"patch":2,"path":"cluster.proxy.mode","reason":"it has no effect on workers"}]}`},
		{"without_hardware", []attr.Value{listOf("machine: {install: {disk: /dev/sda}}", "machine: {nodeLabels: {a: b}}",
			"apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n---\nmachine: {certSANs: [a], nodeLabels: {c: d}}")},
			`{"patches":["machine: {nodeLabels: {a: b}}","machine: {nodeLabels: {c: d}}\n"],` +
				`"skipped":[{"patch":0,"path":"machine.install","reason":"disks and volumes"},` +
				`{"patch":2,"path":"LinkConfig eth0","reason":"addresses and links"},` +
				`{"patch":2,"path":"machine.certSANs","reason":"addresses and links"}]}`},
		{"without_hardware", []attr.Value{listOf()}, `{"patches":[],"skipped":[]}`},
		{"schematic_id", texts("{}"), `"376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"`},
		{"schematic_id", texts(guestAgent), `"` + guestAgent + `"`},
		{"upgrade_path", texts("v1.11.3", "v1.14.1"), `["v1.12.12","v1.13.9","v1.14.1"]`},
		{"upgrade_path", texts("v1.11.3", "v1.13.2", "v1.12.0"), `["v1.12.0","v1.13.2"]`},
		{"upgrade_path", texts("v1.13.2", "v1.13.2"), "[]"},
	} {
		got, err := call(t, test.name, test.arguments...)
		if err != nil {
			t.Errorf("%s%v: %v", test.name, test.arguments, err)

			continue
		}

		if diff := cmp.Diff(test.want, got.String()); diff != "" {
			t.Errorf("%s%v:\n%s", test.name, test.arguments, diff)
		}
	}
}

// Mistakes are reported at their argument, and without the values of a configuration.
func TestFunctions_refuse(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name      string
		arguments []attr.Value
		position  int64
		want      string
	}{
		{"merge_patches", texts("machine: [", "machine: {}"), 0, "found invalid YAML"},
		{"merge_patches", texts("machine: {}", "machine: {}", "machine: {tokn: hunter2}"), 2, "unknown fields: machine.tokn"},
		{"validate_patch", texts("machine: {certSANs: hunter2}", "v1.13.0"), 0, "an invalid patch"},
		{"validate_patch", texts("[{op: remove, path: /machine}]", "v1.13.0"), 0, "a JSON 6902 patch"},
		{"validate_patch", texts("apiVersion: v1alpha1\nkind: ResolverConfig\nhostDNS: {enabled: true}", "v1.13.0"), 0,
			"hostDNS of the document ResolverConfig for Talos v1.13.0"},
		{"validate_patch", []attr.Value{types.StringValue("apiVersion: v1alpha1\nkind: HostnamConfig"), types.StringNull()}, 0,
			"did you mean HostnameConfig?"},
		{"validate_patch", texts("machine: {}", "latest"), 1, `found "latest"`},
		{"validate_patch", texts("machine: {}", "v1.9"), 1, "v1.10.0 to v1.14.x"},
		{"without_hardware", []attr.Value{listOf("machine: {nodeLabels: {a: b}}", "machine: [hunter2")}, 0, "patches[1]"},
		{"convert_patches", append([]attr.Value{listOf("", "machine: {kubelet: {extraMounts: []}, token: hunter2}")}, texts("worker", "v1.13", "v1.14")...),
			0, "[1]: found machine.kubelet.extraMounts"},
		{"convert_patches", append([]attr.Value{listOf()}, texts("hunter", "v1.13", "v1.14")...), 1, "controlplane"},
		{"convert_patches", append([]attr.Value{listOf()}, texts("worker", "v1.14", "v1.13")...), 3, "a newer one"},
		{"machine_config_diff", texts("machine: [hunter2", "{}"), 0, "an invalid configuration"},
		{"machine_config_diff", texts("{}", "machine: [hunter2"), 1, "an invalid configuration"},
		{"parse_machine_config", texts("- hunter2"), 0, "a document that is not a mapping"},
		{"parse_machine_config", texts("machine: {a: .inf}"), 0, "neither text, number"},
		{"installer_image", []attr.Value{types.StringValue("v1.13"), types.StringNull()}, 0, `found "v1.13"`},
		{"installer_image", texts("v1.13.0", "abc"), 1, "64 lower-case hex digits"},
		{"installer_image", texts("v1.13.0", "customization: {extensions: []}"), 1, `unknown field "extensions"`},
		{"installer_image", append(texts("v1.13.0", guestAgent), options(map[string]string{"plattform": "aws"})),
			2, `the option "plattform"`},
		{"installer_image", append(texts("v1.13.0", guestAgent), options(map[string]string{"secure_boot": "yes"})),
			2, `secure_boot = "yes"; allowed: true or false`},
		{"installer_image", append(texts("v1.13.0", guestAgent), options(map[string]string{"registry": "https://x"})),
			2, "not a registry host"},
		{"schematic_id", texts("customization: hunter2"), 0, "not a schematic"},
		{"upgrade_path", texts("1.13", "v1.14.1"), 0, `found "1.13"`},
		{"upgrade_path", texts("v1.13.0", "v1.12.0"), 1, "older than v1.13.0"},
		{"upgrade_path", texts("v1.11.0", "v1.14.0", "v1.12.0", "v1.9.0"), 3, `found "v1.9.0"`},
	} {
		_, err := call(t, test.name, test.arguments...)

		switch {
		case err == nil || err.FunctionArgument == nil:
			t.Errorf("%s%v gives %v", test.name, test.arguments, err)
		case *err.FunctionArgument != test.position || !strings.Contains(err.Text, test.want):
			t.Errorf("%s%v is refused at %d: %s, want at %d: %s", test.name, test.arguments, *err.FunctionArgument, err.Text,
				test.position, test.want)
		case strings.Contains(err.Text, "hunter2"):
			t.Errorf("%s quotes a value: %s", test.name, err.Text)
		}
	}
}
