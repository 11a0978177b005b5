package machines

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// descriptionsOf appends the texts of attributes at any depth.
func descriptionsOf(texts []string, attributes map[string]schema.Attribute) []string {
	for _, attribute := range attributes {
		texts = append(texts, attribute.GetMarkdownDescription())

		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			texts = descriptionsOf(texts, a.Attributes)
		case schema.MapNestedAttribute:
			texts = descriptionsOf(texts, a.NestedObject.Attributes)
		case schema.ListNestedAttribute:
			texts = descriptionsOf(texts, a.NestedObject.Attributes)
		}
	}

	return texts
}

// The handle of what only observes a cluster does not describe effects of a change on machines.
func TestHandle_ofReadersNamesNoEffects(t *testing.T) {
	t.Parallel()

	for name, attributes := range map[string]map[string]schema.Attribute{"observed": clusterhandle.ObservedHandle(),
		"access": clusterhandle.AccessAttributes(), "bound": clusterhandle.BoundAccess(" A change replaces it.")} {
		for _, text := range descriptionsOf(nil, attributes) {
			if strings.Contains(text, "A change is applied") || strings.Contains(text, tf.ReplacesCluster) ||
				strings.Contains(text, "upgrades the machines") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}

	if !tf.ObjectOf(clusterhandle.ObservedHandle()).Equal(tf.ObjectOf(clusterhandle.HandleAttributes())) {
		t.Error("the handle that is observed is of another type")
	}

	texts := strings.Join(descriptionsOf(nil, clusterhandle.JoinHandle(clusterhandle.ReplacesWorkers)), "")
	if !strings.Contains(texts, tf.AppliedLive) || strings.Contains(texts, tf.ReplacesCluster) ||
		!strings.Contains(texts, clusterhandle.ReplacesWorkers) || !strings.Contains(texts, "upgrades the machines") {
		t.Error("the handle of workers does not say what a change does to them")
	}
}
