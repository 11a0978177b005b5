package provider_test

import (
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// before are the releases before the current ones. Every example has to work with both.
var before = struct{ talos, kubernetes string }{"v1.13.9", "v1.36.3"}

var (
	// otherForm is a line of an example, and the comment below it with its form for earlier releases.
	otherForm = regexp.MustCompile(`(?m)^.*\n\s*# Before contract v1\.14: (.*)$`)
	// newOnly is a line of an example that earlier releases do not have.
	newOnly = regexp.MustCompile(`(?m)^.*# from Talos 1\.14$`)
)

// Every resource in the examples is planned, with the versions that the files name and with those before. Secrets and
// handles are known, so plans check the configuration of every machine.
func TestExamples_planOnBothReleases(t *testing.T) {
	t.Parallel()

	for _, folder := range exampleFolders(t) {
		for _, talos := range []string{machineconfig.CurrentTalos, before.talos} {
			t.Run(strings.TrimPrefix(folder, repository+"/examples/")+" "+talos, func(t *testing.T) {
				t.Parallel()

				planExample(t, folder, talos)
			})
		}
	}
}

// exampleFolders are the folders with configuration of resources.
func exampleFolders(t *testing.T) []string {
	t.Helper()

	var folders []string

	tftest.Must(t, filepath.WalkDir(filepath.Join(repository, "examples"),
		func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".tf") {
				folders = append(folders, filepath.ToSlash(filepath.Dir(path)))
			}

			return err
		}))

	slices.Sort(folders)

	return slices.Compact(folders)
}

func planExample(t *testing.T, folder, talos string) {
	t.Helper()

	e := &exampleModule{talos: talos, folder: folder}
	e.load(t)
	e.evaluate(t, e.given(t))

	server := tftest.Serve(t, e.provider(t))

	for _, r := range e.resources(t) {
		// The host cluster of machines in pods is none here: TestAccExamples_applied has one.
		if shown := r.refused(t, server); shown != "" && !strings.Contains(shown, "[no_host_connection]") {
			t.Errorf("%s: %s", r.address, shown)
		}
	}
}

// exampleModule is a module of an example, evaluated without a CLI.
type exampleModule struct {
	talos, folder string
	blocks        map[string][]*hclsyntax.Block
	scope         *hcl.EvalContext
	children      map[string]*exampleModule
}

// load reads the files, with the versions of the release.
func (e *exampleModule) load(t *testing.T) {
	t.Helper()

	e.blocks, e.children = map[string][]*hclsyntax.Block{}, map[string]*exampleModule{}

	for _, file := range e.files(t, "*.tf") {
		content := tftest.ReadFile(t, file)
		if e.talos == before.talos {
			content = newOnly.ReplaceAllString(otherForm.ReplaceAllString(content, "$1"), "")
			content = strings.NewReplacer(machineconfig.CurrentTalos, before.talos,
				machineconfig.CurrentKubernetes, before.kubernetes).Replace(content)
		}

		for _, block := range parsed(t, file, content).Blocks {
			e.blocks[block.Type] = append(e.blocks[block.Type], block)
		}
	}
}

func (e *exampleModule) files(t *testing.T, pattern string) []string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(e.folder, pattern))
	tftest.Must(t, err)

	return files
}

func parsed(t *testing.T, file, content string) *hclsyntax.Body {
	t.Helper()

	parsed, diagnostics := hclsyntax.ParseConfig([]byte(content), file, hcl.InitialPos)
	expectValid(t, diagnostics)

	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		t.Fatalf("%s is a %T", file, parsed.Body)
	}

	return body
}

// given are the values of variables in files of the example.
func (e *exampleModule) given(t *testing.T) map[string]cty.Value {
	t.Helper()

	values := map[string]cty.Value{}

	for _, file := range e.files(t, "*.auto.tfvars") {
		for name, attribute := range parsed(t, file, tftest.ReadFile(t, file)).Attributes {
			values[name] = e.value(t, attribute.Expr, nil)
		}
	}

	return values
}

// evaluate gives a value to every name; arguments are those of a call of the module.
func (e *exampleModule) evaluate(t *testing.T, arguments map[string]cty.Value) {
	t.Helper()

	e.scope = &hcl.EvalContext{Functions: exampleFunctions(), Variables: map[string]cty.Value{
		"var":  cty.ObjectVal(e.variables(t, arguments)),
		"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("."), "root": cty.StringVal(".")}),
		"self": cty.DynamicVal, "local": cty.EmptyObjectVal, "module": cty.DynamicVal,
		"data": cty.DynamicVal, "ephemeral": cty.DynamicVal, "terraform": cty.DynamicVal,
	}}

	for kind, instances := range e.stored(t) {
		e.scope.Variables[kind] = cty.ObjectVal(instances)
	}

	e.evaluateLocals()

	modules := map[string]cty.Value{}

	for _, block := range e.blocks["module"] {
		modules[block.Labels[0]] = e.call(t, block)
		e.scope.Variables["module"] = cty.ObjectVal(modules)
	}

	e.evaluateLocals()
}

// variables have their defaults, or samples of their types.
func (e *exampleModule) variables(t *testing.T, arguments map[string]cty.Value) map[string]cty.Value {
	t.Helper()

	values := map[string]cty.Value{}

	for _, block := range e.blocks["variable"] {
		name := block.Labels[0]
		typ, defaults := cty.DynamicPseudoType, (*typeexpr.Defaults)(nil)

		if given := block.Body.Attributes["type"]; given != nil {
			var diagnostics hcl.Diagnostics

			typ, defaults, diagnostics = typeexpr.TypeConstraintWithDefaults(given.Expr)
			expectValid(t, diagnostics)
		}

		value, given := arguments[name]
		if name == "endpoint" && !given { // a module that is called may have a virtual IP instead
			value, given = e.sample(t, name, typ), true
		}

		if standard := block.Body.Attributes["default"]; !given && standard != nil {
			var diagnostics hcl.Diagnostics

			value, diagnostics = standard.Expr.Value(nil)
			expectValid(t, diagnostics)
		} else if !given {
			value = e.sample(t, name, typ)
		}

		if defaults != nil && !value.IsNull() {
			value = defaults.Apply(value)
		}

		value, err := convert.Convert(value, typ)
		if err != nil {
			t.Fatalf("variable %s: %v", name, err)
		}

		values[name] = value
	}

	return values
}

// sample is a value for a variable without one.
func (e *exampleModule) sample(t *testing.T, name string, typ cty.Type) cty.Value {
	t.Helper()

	switch {
	case name == "vms" && typ == cty.DynamicPseudoType:
		return cty.ObjectVal(map[string]cty.Value{"cp-1": cty.ObjectVal(map[string]cty.Value{
			"role": cty.StringVal("controlplane"), "address": cty.StringVal("10.0.0.11"), "uuid": cty.StringVal(vmUUID)})})
	case typ == cty.DynamicPseudoType && strings.HasSuffix(name, "_ca"):
		return cty.StringVal(certificate(t))
	case typ == cty.DynamicPseudoType:
		return e.handle(t)
	case typ.IsMapType() && typ.ElementType().IsMapType():
		return cty.MapVal(map[string]cty.Value{"pool": e.sample(t, name, typ.ElementType())})
	case typ.IsMapType():
		return cty.MapVal(map[string]cty.Value{"m-1": e.sample(t, name, typ.ElementType())})
	case typ.IsListType():
		return cty.ListVal([]cty.Value{e.sample(t, name, typ.ElementType())})
	case typ.IsObjectType():
		values := map[string]cty.Value{}

		for attribute, of := range typ.AttributeTypes() {
			if !typ.AttributeOptional(attribute) {
				values[attribute] = e.sample(t, name+"."+attribute, of)
			}
		}

		return cty.ObjectVal(values)
	default:
		return cty.StringVal(sampleText(t, name))
	}
}

const vmUUID = "0b6a9d6a-3f5e-4d0c-9a54-2f6f0f4a7a11"

// sampleText is the value of a text by the name of its variable and attribute.
func sampleText(t *testing.T, name string) string {
	t.Helper()

	last := name[strings.LastIndex(name, ".")+1:]

	switch {
	case last == "role":
		return "worker"
	case last == "ca" || strings.HasSuffix(last, "_ca"):
		return certificate(t)
	case last == "chart":
		return "./chart"
	case last == "host":
		return "registry.example.com"
	case last == "recipient":
		return sitetest.NewIdentity(t).Recipient().String()
	case strings.Contains(last, "secrets"):
		return tftest.Bundle()
	case strings.Contains(last, "version"):
		return machineconfig.CurrentKubernetes
	case strings.Contains(last, "endpoint"):
		return "https://10.0.0.10:6443"
	case last == "virtual_ip":
		return "10.0.0.10"
	case strings.HasPrefix(name, "control_plane"):
		return "10.0.0.12"
	default:
		return "10.0.0.21"
	}
}

func certificate(t *testing.T) string {
	t.Helper()

	registry := httptest.NewTLSServer(nil)
	t.Cleanup(registry.Close)

	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw}))
}

// handle is the handle of a cluster of the release.
func (e *exampleModule) handle(t *testing.T) cty.Value {
	t.Helper()

	kubernetes := machineconfig.CurrentKubernetes
	if e.talos == before.talos {
		kubernetes = before.kubernetes
	}

	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal("prod"), "mode": cty.StringVal("metal"), "endpoint": cty.StringVal("https://10.0.0.10:6443"),
		"secrets":         cty.StringVal(tftest.Bundle()),
		"talos_endpoints": cty.ListVal([]cty.Value{cty.StringVal("10.0.0.11"), cty.StringVal("10.0.0.12"), cty.StringVal("10.0.0.13")}),
		"talos_version":   cty.StringVal(e.talos), "kubernetes_version": cty.StringVal(kubernetes),
		"version_contract": cty.StringVal(e.talos[:strings.LastIndex(e.talos, ".")]),
	})
}

// stored are the resources by type and name, as other expressions see them: secrets and handles are known.
func (e *exampleModule) stored(t *testing.T) map[string]map[string]cty.Value {
	t.Helper()

	found := map[string]map[string]cty.Value{}

	for _, block := range e.blocks["resource"] {
		kind, name := block.Labels[0], block.Labels[1]
		if found[kind] == nil {
			found[kind] = map[string]cty.Value{}
		}

		found[kind][name] = cty.DynamicVal

		schema, ours := tftest.Schemas(t).ResourceSchemas[kind]
		if !ours || block.Body.Attributes["for_each"] != nil {
			continue
		}

		values := map[string]cty.Value{}

		for attribute, of := range ctyType(t, schema.ValueType()).AttributeTypes() {
			values[attribute] = cty.UnknownVal(of)
		}

		if kind == "talosop_secrets" {
			values["bundle"] = cty.StringVal(tftest.Bundle())
		}

		if kind == "talosop_cluster" || kind == "talosop_control_plane" {
			values["cluster"] = e.handle(t)
		}

		found[kind][name] = cty.ObjectVal(values)
	}

	return found
}

// evaluateLocals evaluates locals until no more of them have a value: they refer to each other in any order.
func (e *exampleModule) evaluateLocals() {
	values := map[string]cty.Value{}

	for range 5 {
		for _, block := range e.blocks["locals"] {
			for name, attribute := range block.Body.Attributes {
				if value, diagnostics := attribute.Expr.Value(e.scope); !diagnostics.HasErrors() {
					values[name] = value
				}
			}
		}

		e.scope.Variables["local"] = cty.ObjectVal(values)
	}
}

// call evaluates a module, and returns its outputs, by key with for_each.
func (e *exampleModule) call(t *testing.T, block *hclsyntax.Block) cty.Value {
	t.Helper()

	if block.Body.Attributes["for_each"] == nil {
		return e.callIn(t, block, "", e.scope)
	}

	outputs := map[string]cty.Value{}
	for key, scope := range e.instances(t, block) {
		outputs[strings.Trim(key, "[]")] = e.callIn(t, block, key, scope)
	}

	return cty.ObjectVal(outputs)
}

// callIn evaluates an instance of a module in a scope.
func (e *exampleModule) callIn(t *testing.T, block *hclsyntax.Block, key string, scope *hcl.EvalContext) cty.Value {
	t.Helper()

	arguments, outputs := map[string]cty.Value{}, map[string]cty.Value{}

	for name, attribute := range block.Body.Attributes {
		if !slices.Contains([]string{"source", "depends_on", "for_each", "providers"}, name) {
			arguments[name] = e.value(t, attribute.Expr, scope)
		}
	}

	source := e.value(t, block.Body.Attributes["source"].Expr, nil).AsString()
	child := &exampleModule{talos: e.talos, folder: filepath.ToSlash(filepath.Join(e.folder, source))}
	child.load(t)
	child.evaluate(t, arguments)

	for _, output := range child.blocks["output"] {
		outputs[output.Labels[0]] = child.value(t, output.Body.Attributes["value"].Expr, child.scope)
	}

	e.children[block.Labels[0]+key] = child

	return cty.ObjectVal(outputs)
}

func (e *exampleModule) value(t *testing.T, expression hclsyntax.Expression, scope *hcl.EvalContext) cty.Value {
	t.Helper()

	value, diagnostics := expression.Value(scope)
	expectValid(t, diagnostics)

	return value
}

func expectValid(t *testing.T, diagnostics hcl.Diagnostics) {
	t.Helper()

	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
}

// provider is the configuration of the provider.
func (e *exampleModule) provider(t *testing.T) tftest.Config {
	t.Helper()

	config := tftest.Config{}

	for _, block := range e.blocks["provider"] {
		for name, attribute := range block.Body.Attributes {
			if block.Labels[0] == "talosop" && name == "clusters" {
				encoded, err := ctyjson.Marshal(e.value(t, attribute.Expr, e.scope), cty.DynamicPseudoType)
				tftest.Must(t, err)

				var plain struct{ Value tftest.Config }
				tftest.Must(t, json.Unmarshal(encoded, &plain))
				config[name] = plain.Value
			}
		}
	}

	return config
}

// exampleResource is the configuration of a resource of the provider.
type exampleResource struct {
	kind, address string
	config        tfprotov6.DynamicValue
}

// resources are those of the module and of the modules that it calls.
func (e *exampleModule) resources(t *testing.T) []exampleResource {
	t.Helper()

	var found []exampleResource

	for _, block := range e.blocks["resource"] {
		if _, ours := tftest.Schemas(t).ResourceSchemas[block.Labels[0]]; !ours {
			continue
		}

		for key, scope := range e.instances(t, block) {
			found = append(found, exampleResource{kind: block.Labels[0], address: strings.Join(block.Labels, ".") + key,
				config: e.config(t, block, scope)})
		}
	}

	for _, name := range slices.Sorted(maps.Keys(e.children)) {
		for _, r := range e.children[name].resources(t) {
			r.address = "module." + name + "." + r.address
			found = append(found, r)
		}
	}

	return found
}

// instances are the scopes of a block: one for each key of for_each, or its only one.
func (e *exampleModule) instances(t *testing.T, block *hclsyntax.Block) map[string]*hcl.EvalContext {
	t.Helper()

	forEach := block.Body.Attributes["for_each"]
	if forEach == nil {
		return map[string]*hcl.EvalContext{"": e.scope}
	}

	found := map[string]*hcl.EvalContext{}
	keys := e.value(t, forEach.Expr, e.scope)

	if !keys.IsKnown() {
		return nil
	}

	for it := keys.ElementIterator(); it.Next(); {
		key, value := it.Element()
		scope := e.scope.NewChild()
		scope.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		found["["+key.AsString()+"]"] = scope
	}

	return found
}

// config is the configuration of a block in the form of a request.
func (e *exampleModule) config(t *testing.T, block *hclsyntax.Block, scope *hcl.EvalContext) tfprotov6.DynamicValue {
	t.Helper()

	typ := ctyType(t, tftest.Schemas(t).ResourceSchemas[block.Labels[0]].ValueType())
	values := map[string]cty.Value{}

	for name, attribute := range block.Body.Attributes {
		if typ.HasAttribute(name) {
			values[name] = e.value(t, attribute.Expr, scope)
		} else if !slices.Contains([]string{"for_each", "count", "depends_on", "provider"}, name) {
			t.Errorf("%s has no attribute %s", strings.Join(block.Labels, "."), name)
		}
	}

	value, err := convert.Convert(cty.ObjectVal(values), optionalAttributes(typ))
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(block.Labels, "."), err)
	}

	encoded, err := msgpack.Marshal(value, typ)
	tftest.Must(t, err)

	return tfprotov6.DynamicValue{MsgPack: encoded}
}

// refused is the errors of a plan that creates the resource; "" for none.
func (r exampleResource) refused(t *testing.T, server tfprotov6.ProviderServer) string {
	t.Helper()

	valid, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: r.kind, Config: &r.config,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	tftest.Must(t, err)

	outcome := tftest.Outcome{Diagnostics: valid.Diagnostics}

	// Charts are in registries of other parties.
	if !outcome.Failed() && r.kind != "talosop_addon" {
		typ := tftest.TypeOf(t, r.kind)
		value, err := r.config.Unmarshal(typ)
		tftest.Must(t, err)

		d := &tftest.Driven{Server: server, Name: r.kind, State: tftypes.NewValue(typ, nil)}
		outcome = d.PlanValue(t, value)
	}

	if !outcome.Failed() {
		return ""
	}

	return tftest.Show(outcome.Diagnostics)
}

// ctyType is a type of the protocol in the library that evaluates expressions.
func ctyType(t *testing.T, typ tftypes.Type) cty.Type {
	t.Helper()

	encoded, err := json.Marshal(typ)
	tftest.Must(t, err)

	converted, err := ctyjson.UnmarshalType(encoded)
	tftest.Must(t, err)

	return converted
}

// optionalAttributes is a type whose objects may lack attributes.
func optionalAttributes(typ cty.Type) cty.Type {
	switch {
	case typ.IsObjectType():
		attributes := map[string]cty.Type{}
		for name, of := range typ.AttributeTypes() {
			attributes[name] = optionalAttributes(of)
		}

		return cty.ObjectWithOptionalAttrs(attributes, slices.Collect(maps.Keys(attributes)))
	case typ.IsMapType():
		return cty.Map(optionalAttributes(typ.ElementType()))
	case typ.IsListType():
		return cty.List(optionalAttributes(typ.ElementType()))
	default:
		return typ
	}
}

// exampleFunctions are the functions in the examples. JSON is YAML, and the result of other functions is unknown.
func exampleFunctions() map[string]function.Function {
	known := map[string]function.Function{
		"yamlencode": stdlib.JSONEncodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "merge": stdlib.MergeFunc,
		"values": stdlib.ValuesFunc, "contains": stdlib.ContainsFunc, "keys": stdlib.KeysFunc, "flatten": stdlib.FlattenFunc, "concat": stdlib.ConcatFunc, "range": stdlib.RangeFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "coalesce": stdlib.CoalesceFunc, "split": stdlib.SplitFunc,
		"join": stdlib.JoinFunc, "sort": stdlib.SortFunc, "replace": stdlib.ReplaceFunc, "regex": stdlib.RegexFunc,
		"try": tryfunc.TryFunc, "can": tryfunc.CanFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	}

	unknown := function.New(&function.Spec{
		VarParam: &function.Parameter{Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true,
			AllowDynamicType: true},
		Type: function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, nil },
	})

	for _, name := range strings.Fields(`abspath templatestring alltrue anytrue distinct file fileset floor formatdate min nonsensitive one
		pathexpand plantimestamp
		startswith timeadd timecmp timestamp uuidv5 provider::talosop::installer_image provider::talosop::machine_config_diff
		provider::talosop::merge_patches provider::talosop::parse_machine_config provider::talosop::schematic_id
		provider::talosop::convert_patches provider::talosop::without_hardware
		provider::talosop::upgrade_path provider::talosop::validate_patch`) {
		known[name] = unknown
	}

	return known
}
