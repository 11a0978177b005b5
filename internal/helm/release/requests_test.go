package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// The requests of each operation to an API server, without the Lease, which is renewed by time. Each operation
// runs as a new process without cached data.
func TestRequests_ofOperations(t *testing.T) {
	t.Parallel()

	const objects = 9

	p, templates := newPlace(t), map[string]string{}
	for i := range objects {
		templates[fmt.Sprintf("templates/%d.yaml", i)] = configMap(fmt.Sprintf("a%d", i), "{{ .Values.a }}")
	}

	chart, spec := packageOf(t, kubetest.Chart("web", "1.0.0", templates)), p.spec(map[string]any{"a": "b"})
	changed := p.spec(map[string]any{"a": "c"})
	spec.Options.Wait, changed.Options.Wait = false, false

	for _, test := range []struct {
		name string
		// more than fixed are those for each object.
		fixed, each int
		do          func(c *release.Cluster) error
	}{
		{"plan of an installation", 5, 1, func(c *release.Cluster) error {
			_, err := c.Render(t.Context(), spec, chart, release.Observation{})

			return err
		}},
		// Read twice, by us for the leftovers of its removal and by Helm for obstacles, and created.
		{"installation", 11, 3, func(c *release.Cluster) error {
			_, err := c.Apply(t.Context(), spec, chart, release.Intent{Create: true})

			return err
		}},
		{"nothing to do", 4, 0, func(c *release.Cluster) error {
			_, err := c.Apply(t.Context(), spec, chart, release.Intent{})

			return err
		}},
		{"drift", 2, 2, func(c *release.Cluster) error {
			have, err := c.Observe(t.Context(), spec.Name)
			if err != nil {
				return err
			}

			last, _ := have.Deployed()
			_, err = c.Drift(t.Context(), last, release.DriftOptions{Release: spec.Name})

			return err
		}},
		// Whose it is, and Helm's own two reads and the patch.
		{"change of each object", 15, 4, func(c *release.Cluster) error {
			_, err := c.Apply(t.Context(), changed, chart, release.Intent{})

			return err
		}},
		{"removal", 12, 2, func(c *release.Cluster) error {
			return c.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true})
		}},
	} {
		proxy := newFaultProxy(t, p.real)

		if err := test.do(&release.Cluster{API: proxy.client, Slots: client.NewSlots(0)}); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}

		var calls []string

		for _, call := range proxy.all() {
			if !strings.Contains(call, "/leases") {
				calls = append(calls, call)
			}
		}

		if most := test.fixed + test.each*objects; len(calls) > most {
			t.Errorf("%s: %d requests, want at most %d:\n%s", test.name, len(calls), most, strings.Join(calls, "\n"))
		}

		// The list that an operation begins with, and the one after what it wrote.
		lists := slices.DeleteFunc(calls, func(call string) bool { return !strings.Contains(call, "labelSelector=") })
		if len(lists) > 2 {
			t.Errorf("%s: lists, which wait for the cache of the API server:\n%s", test.name, strings.Join(lists, "\n"))
		}
	}
}
