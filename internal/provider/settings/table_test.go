package settings

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// modelsOf are the models of a level, which have a field for each of its attributes.
var modelsOf = map[Level][]any{
	Cluster: {NodeModel{}, PlaneModel{}}, Handle: {NodeModel{}, PlaneModel{}},
	ControlPlane: {NodeModel{}, PlaneModel{}}, ControlPlaneBlock: {NodeModel{}, VIPModel{}},
	Workers: {NodeModel{}}, Configured: {NodeModel{}}, Machine: {MachineModel{}}, OneMachine: {MachineModel{}},
}

func TestTable_modelsHaveTheAttributesOfTheirLevel(t *testing.T) {
	for level, models := range modelsOf {
		fields := map[string]bool{}

		for _, model := range models {
			for name := range tf.FieldsOf(reflect.TypeOf(model)) {
				fields[name] = true
			}
		}

		for name, attribute := range Attributes(level) {
			field := reflect.Value{}
			for _, model := range models {
				if found, ok := fieldOf(reflect.ValueOf(model), name); ok {
					field = found
				}
			}

			if value := reflect.TypeOf(attribute.GetType().ValueType(context.Background())); !field.IsValid() ||
				field.Type() != value {
				t.Errorf("level %d: no field of type %s for %s", level, value, name)
			}

			delete(fields, name)
		}

		if len(fields) > 0 {
			t.Errorf("level %d: no attributes for the fields %v", level, fields)
		}
	}
}

// Each setting is one row.
func TestTable_settingsOnce(t *testing.T) {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name)
	}

	slices.Sort(names)

	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the settings are %q", names)
	}
}

// What is written into models is read back, and what is unknown is remembered.
func TestWrite_isReadBack(t *testing.T) {
	ctx := context.Background()

	var values setting.Values
	values.Set(setting.Labels, map[string]string{"rack": "b2", "empty": ""})
	values.Set(setting.Taints, map[string]string{"gpu": "NoSchedule"})

	values.Set(setting.VIP, &setting.VIPConfig{Address: "10.0.0.10", Link: "eth0"})
	values.Set(setting.OIDC, &setting.OIDCConfig{IssuerURL: "https://id.test", ClientID: "kube", UsernameClaim: "name",
		RequiredClaims: map[string]string{"hd": "example.com"}})

	var (
		model  NodeModel
		planes PlaneModel
	)

	if diags := Write(ctx, values, &model, &planes); diags.HasError() {
		t.Fatal(diags)
	}

	if !model.Annotations.Equal(types.MapNull(types.StringType)) {
		t.Errorf("annotations are %s", model.Annotations)
	}

	r := &tf.Reader{}
	if got := Read(ctx, r, model, planes); !reflect.DeepEqual(got, values) || r.Unknown {
		t.Errorf("got %v, want %v", got, values)
	}

	Unknown(&model, &planes)

	if got := Read(ctx, r, model, planes); len(got) > 0 || !r.Unknown {
		t.Errorf("of an unknown model %v is known", got)
	}
}
