package settings

import (
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// modelsOf are the models of a level, which have a field for each of its attributes.
var modelsOf = map[Level][]any{
	Cluster: {ClusterModel{}, OwnModel{}, NodeModel{}, PlaneModel{}}, Handle: {ClusterModel{}, NodeModel{}, PlaneModel{}},
	ControlPlane: {ClusterModel{}, OwnModel{}, NodeModel{}, PlaneModel{}}, ControlPlaneBlock: {NodeModel{}, VIPModel{}},
	Workers: {NodeModel{}}, Configured: {NodeModel{}}, Machine: {MachineModel{}}, OneMachine: {MachineModel{}},
}

func TestTable_modelsHaveTheAttributesOfTheirLevel(t *testing.T) {
	for level, models := range modelsOf {
		unused := map[string]bool{}

		for _, model := range models {
			for name := range tf.FieldsOf(reflect.TypeOf(model)) {
				unused[name] = true
			}
		}

		for name, attribute := range Attributes(level) {
			var found []reflect.Type

			for row, field := range fields(models) {
				if row.called() == name {
					found = append(found, field.Type())
				}
			}

			value := reflect.TypeOf(attribute.GetType().ValueType(t.Context()))
			if len(found) != 1 || found[0] != value {
				t.Errorf("level %d: no field of type %s for %s", level, value, name)
			}

			delete(unused, name)
		}

		if len(unused) > 0 {
			t.Errorf("level %d: no attributes for the fields %v", level, unused)
		}
	}
}

// Each setting is one row.
func TestTable_settingsOnce(t *testing.T) {
	var names []string
	for _, r := range table {
		names = append(names, r.called())
	}

	slices.Sort(names)

	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the settings are %q", names)
	}
}

// Values written into models are read back, and unknown ones are kept.
func TestWrite_isReadBack(t *testing.T) {
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

	Write(values, &model, &planes)

	if !model.Annotations.Equal(types.MapNull(types.StringType)) {
		t.Errorf("annotations are %s", model.Annotations)
	}

	r := &tf.Reader{}
	if got := Read(r, model, planes); !reflect.DeepEqual(got, values) || r.Unknown {
		t.Errorf("got %v, want %v", got, values)
	}

	Unknown(&model, &planes)

	if got := Read(r, model, planes); len(got) > 0 || !r.Unknown {
		t.Errorf("of an unknown model %v is known", got)
	}
}

// Talos defaults are left out.
func TestWriteCluster_ofDefaults(t *testing.T) {
	var model struct {
		ClusterModel
		OwnModel
	}

	Unknown(&model)
	WriteCluster(machineconfig.Cluster{}, &model)

	for row, field := range fields([]any{model}) {
		if value, is := field.Interface().(attr.Value); !is || !value.IsNull() {
			t.Errorf("%s of nothing is %v", row.name, field)
		}
	}
}
