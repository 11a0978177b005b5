package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// The tests of this file's helpers talk to the provider in the protocol of the
// CLIs, without one.

// configuration is a value of a configuration: maps for objects and maps, slices
// for lists, strings, booleans, nil, or unknown.
type configuration = map[string]any

// unknown stands for a value that is known after apply.
type unknownValue struct{}

// configured is a provider for the plans of one run of a CLI.
func configured() (tfprotov6.ProviderServer, error) {
	m := newProviderData()

	m.Removals = func(_ context.Context, _ *providerdata.ProviderData, _ machineset.Set,
		u machineset.UpgradeOf) (providerdata.Impediments, error) {
		if u.Path.To.String() != removing {
			return providerdata.Impediments{}, nil
		}

		return providerdata.Impediments{
			Obstacles: upgrade.Obstacles{Settings: []upgrade.RemovedSetting{
				{Kind: "flag", Name: "--a-flag", Component: "kube-apiserver", Nodes: []string{"cp-1"}, RemovedIn: "1.36"},
			}},
			Behind: []kubestate.Node{{Name: "elsewhere", KubeletVersion: "v1.32.1"}},
		}, errors.New("a worker did not answer")
	}

	m.Hosts.Open = func(hostcluster.Options) (containers.Host, error) { return roomyHost{}, nil }

	server, err := providerserver.NewProtocol6WithError(NewOf("test", m))()
	if err != nil {
		return nil, err
	}

	return server, configure(server)
}

// roomyHost is a host cluster that has a place for everything. Plans ask no more of it.
type roomyHost struct{ containers.Host }

func (roomyHost) Check(context.Context, workload.Spec) ([]preflight.Finding, error) {
	return nil, nil
}

func (roomyHost) Close() {}

// configure gives a provider a configuration that says nothing.
func configure(server tfprotov6.ProviderServer) error {
	config, err := nothingConfigured()
	if err != nil {
		return err
	}

	resp, err := server.ConfigureProvider(context.Background(), &tfprotov6.ConfigureProviderRequest{Config: config})
	if err == nil && len(resp.Diagnostics) > 0 {
		err = errors.New(show(resp.Diagnostics))
	}

	return err
}

// nothingConfigured is the configuration of a provider that says nothing.
var nothingConfigured = sync.OnceValues(func() (*tfprotov6.DynamicValue, error) {
	server, err := providerserver.NewProtocol6WithError(NewOf("test", nil))()
	if err != nil {
		return nil, err
	}

	told, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}

	nothing := map[string]tftypes.Value{}
	for _, a := range told.Provider.Block.Attributes {
		nothing[a.Name] = tftypes.NewValue(a.ValueType(), nil)
	}

	typ := told.Provider.ValueType()
	config, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, nothing))

	return &config, err
})

// removing is a version that removes a flag that is in use.
const removing = "v1.36.2"

// providerServer is a configured provider.
func providerServer(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	server, err := configured()
	if err != nil {
		t.Fatal(err)
	}

	return server
}

// typeOf is the type of the values of a resource.
func typeOf(t *testing.T, resource string) tftypes.Object {
	t.Helper()

	object, ok := schemas(t).ResourceSchemas[resource].ValueType().(tftypes.Object)
	if !ok {
		t.Fatalf("%s is not an object", resource)
	}

	return object
}

// valueOf converts a configuration to a type; what is left out is null.
func valueOf(t *testing.T, typ tftypes.Type, v any) tftypes.Value {
	t.Helper()

	switch v := v.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case unknownValue:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case tftypes.Value:
		return convertedTo(t, typ, v)
	case configuration:
		return objectOrMap(t, typ, v)
	case []any:
		list, ok := typ.(tftypes.List)
		if !ok {
			t.Fatalf("%v is not a %s", v, typ)
		}

		elements := make([]tftypes.Value, len(v))
		for i, e := range v {
			elements[i] = valueOf(t, list.ElementType, e)
		}

		return tftypes.NewValue(typ, elements)
	default:
		return tftypes.NewValue(typ, v)
	}
}

// convertedTo is a value in another type, as a reference is: what the type does not have is left out.
func convertedTo(t *testing.T, typ tftypes.Type, v tftypes.Value) tftypes.Value {
	t.Helper()

	object, ok := typ.(tftypes.Object)

	switch {
	case v.Type().Equal(typ) || !ok:
		return v
	case !v.IsKnown():
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case v.IsNull():
		return tftypes.NewValue(typ, nil)
	}

	fields := map[string]tftypes.Value{}
	has := fieldsOf(t, v)

	for name, attribute := range object.AttributeTypes {
		fields[name] = tftypes.NewValue(attribute, nil)
		if field, ok := has[name]; ok {
			fields[name] = convertedTo(t, attribute, field)
		}
	}

	return tftypes.NewValue(typ, fields)
}

func objectOrMap(t *testing.T, typ tftypes.Type, v configuration) tftypes.Value {
	t.Helper()

	values := map[string]tftypes.Value{}

	switch typ := typ.(type) {
	case tftypes.Object:
		for name, attribute := range typ.AttributeTypes {
			values[name] = valueOf(t, attribute, v[name])
		}

		for name := range v {
			if _, ok := typ.AttributeTypes[name]; !ok {
				t.Fatalf("there is no attribute %s", name)
			}
		}
	case tftypes.Map:
		for name, e := range v {
			values[name] = valueOf(t, typ.ElementType, e)
		}
	default:
		t.Fatalf("%v is not a %s", v, typ)
	}

	return tftypes.NewValue(typ, values)
}

func dynamic(t *testing.T, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()

	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatal(err)
	}

	return &d
}

// bundleOnce is the first bundle as YAML.
var bundleOnce = sync.OnceValue(func() string {
	bundle, err := firstBundle()
	if err != nil {
		panic(err)
	}

	encoded, err := bundle.YAML()
	if err != nil {
		panic(err)
	}

	return string(encoded)
})

// baseControlPlane is a configuration that is right.
func baseControlPlane() configuration {
	return configuration{
		"mode": "metal", "name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": bundleOnce(),
		"talos_version": "v1.13.0", "kubernetes_version": "v1.35.2",
		"install": configuration{"disk": "/dev/sda"},
		"machines": configuration{
			"cp-1": configuration{"address": "10.0.0.11"},
			"cp-2": configuration{"address": "10.0.0.12"},
			"cp-3": configuration{"address": "10.0.0.13"},
		},
	}
}

// baseWorker is a configuration that is right, with a handle written by hand.
func baseWorker() configuration {
	return configuration{
		"talos_version": "v1.13.0",
		"install":       configuration{"disk": "/dev/sda"},
		"cluster": configuration{
			"name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": bundleOnce(), "kubernetes_version": "v1.35.2",
			"version_contract": "v1.13", "talos_endpoints": []any{"10.0.0.11"},
		},
		"machines": configuration{"w-1": configuration{"address": "10.0.0.21"}, "w-2": configuration{"address": "10.0.0.22"}},
	}
}

// baseCluster is a configuration that is right.
func baseCluster() configuration {
	base := baseControlPlane()

	base["control_plane"] = configuration{"install": base["install"], "machines": base["machines"]}
	base["workers"] = configuration{
		"batch": configuration{
			"install": configuration{"disk": "/dev/sda"},
			"machines": configuration{"w-1": configuration{"address": "10.0.0.21"},
				"w-2": configuration{"address": "10.0.0.22"}},
		},
		"gpu": configuration{
			"install":       configuration{"disk": "/dev/nvme0n1"},
			"talos_version": "v1.13.0",
			"machines":      configuration{"w-1": configuration{"address": "10.0.0.31"}},
		},
	}

	delete(base, "install")
	delete(base, "machines")

	return base
}

// validate asks the provider to validate a configuration.
func validate(t *testing.T, resource string, config configuration) []*tfprotov6.Diagnostic {
	t.Helper()

	resp, err := providerServer(t).ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resource, Config: dynamic(t, valueOf(t, typeOf(t, resource), config)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp.Diagnostics
}

// planned asks the provider for a plan from a prior state (nil for none).
func planned(
	t *testing.T, resource string, prior *tftypes.Value, config tftypes.Value,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	return plannedBy(t, providerServer(t), resource, prior, config)
}

// plannedBy is planned in the plan of a provider.
func plannedBy(
	t *testing.T, server tfprotov6.ProviderServer, resource string, prior *tftypes.Value, config tftypes.Value,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	state := tftypes.NewValue(config.Type(), nil)
	if prior != nil {
		state = *prior
	}

	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: dynamic(t, state), ProposedNewState: dynamic(t, proposed(t, prior, config)),
		Config: dynamic(t, config),
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp
}

// proposed is what a CLI proposes: the configuration, and what was computed before.
func proposed(t *testing.T, prior *tftypes.Value, config tftypes.Value) tftypes.Value {
	t.Helper()

	if prior == nil {
		return config
	}

	var was, wanted map[string]tftypes.Value
	if err := prior.As(&was); err != nil {
		t.Fatal(err)
	}

	if err := config.As(&wanted); err != nil {
		t.Fatal(err)
	}

	wanted = maps.Clone(wanted) // As hands out the map of the value itself

	computed := map[string]bool{
		"id": true, "phase": true, "operations": true, "observed": true, "version_contract": true, "platform": true,
		"on_destroy": true, "on_incomplete": true, "deletion_protection": true, "bootstrap_manifests_version": true,
		"restored_from": true, "restored_at": true,
	}

	for name, v := range wanted {
		if v.IsNull() && (computed[name] || name == "cluster" && len(was) > 20) {
			wanted[name] = was[name]
		}
	}

	return tftypes.NewValue(config.Type(), wanted)
}

// show renders diagnostics for messages of tests.
func show(diagnostics []*tfprotov6.Diagnostic) string {
	out := ""
	for _, d := range diagnostics {
		out += fmt.Sprintf("%s %s at %s: %s\n", d.Severity, d.Summary, d.Attribute, d.Detail)
	}

	return out
}
