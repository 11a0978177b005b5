package provider_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A cluster is created with as many attributes as one configuration can have. The next plan is empty, and every
// computed attribute is known. Before a release each attribute then becomes unknown.
func TestAttributes_created(t *testing.T) {
	t.Parallel()

	table := readAttributeTable(t)

	for resource := range table.Created {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()

			createdWithEverything(t, table, resource)
		})
	}
}

// creation is what a create on simulated machines has besides the table.
type creation struct {
	// Samples are values by the end of a path: $cp and $worker are addresses of machines, $endpoint that of the Kubernetes
	// API, and $server a server that answers every request.
	Samples map[string]any `json:"samples"`
	// Without are attributes that the create leaves out, with the reason.
	Without map[string]string `json:"without"`
	// Unset are computed attributes without a value after the create, with the reason.
	Unset map[string]string `json:"unset"`
}

func createdWithEverything(t *testing.T, table *attributeTable, resource string) {
	t.Helper()

	s := sitetest.New(t, 1, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)

	replaced := map[string]any{"$cp": s.ControlPlane[0].Address().String(), "$worker": s.Workers[0].Address().String(),
		"$endpoint": s.URL, "$server": server.URL, "$folder": t.TempDir(), "$secrets": tftest.Bundle()}
	how := table.Created[resource]
	v := variant{attributeTable: table, own: resolved(how.Samples, replaced), without: how.Without}

	schema := tftest.Schemas(t).ResourceSchemas[resource]
	config := v.object(resource, schema.Block.Attributes)

	d := tftest.DriveWith(t, tftest.QuickProviderData(), resource)
	d.Ready(t, config)
	d.Refresh(t).Must(t)

	if planned := d.Plan(t, config).Must(t); !planned.Value.Equal(d.State) {
		differences, _ := d.State.Diff(planned.Value)
		t.Errorf("the plan after the create is not empty: %v", differences)
	}

	computedAreKnown(t, resource, schema.Block.Attributes, d.State, how.Unset)

	if testenv.Everything() {
		updatesUnknown(t, table, d, config)
	}
}

// updatesUnknown plans updates in which one attribute of a cluster is unknown.
func updatesUnknown(t *testing.T, table *attributeTable, d *tftest.Driven, config tftest.Config) {
	t.Helper()

	for _, v := range validations(t) {
		if v.where != d.Name {
			continue
		}

		trial := &attributeTrial{attributeTable: table, validation: v, full: fullVariant{name: "update of " + d.Name},
			driven: d, value: tftest.ValueOf(t, d.State.Type(), config), final: d.State}

		for _, c := range changesIn(t, trial.value, func(*tftypes.AttributePath) bool { return true }, d.Name) {
			if c.how == "unknown" {
				trial.try(t, []change{c})
			}
		}
	}
}

// resolved are samples with the values of placeholders.
func resolved(samples map[string]any, placeholders map[string]any) map[string]any {
	out := map[string]any{}

	for end, value := range samples {
		out[end] = value

		if text, ok := value.(string); ok {
			if known, ok := placeholders[text]; ok {
				out[end] = known
			}
		}
	}

	return out
}

// computedAreKnown checks that every computed attribute in a state has a value, unless unset has its reason.
func computedAreKnown(
	t *testing.T, where string, attributes []*tfprotov6.SchemaAttribute, state tftypes.Value, unset map[string]string,
) {
	t.Helper()

	var computed, found []string

	tftest.WalkAttributes(where, attributes, func(path string, a *tfprotov6.SchemaAttribute) {
		if _, reason := fitting(unset, path); a.Computed && !reason {
			computed = append(computed, path)
		}
	})

	tftest.Must(t, tftypes.Walk(state, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if v.IsKnown() && !v.IsNull() {
			found = append(found, namesOf(where, at))
		}

		return true, nil
	}))

	for _, path := range computed {
		if !slices.Contains(found, path) {
			t.Errorf("%s is null after a create with everything", path)
		}
	}
}
