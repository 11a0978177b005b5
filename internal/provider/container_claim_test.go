package provider

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Two resources of one name would have the same pods: the second one is refused. Workers that are preserved do not keep
// their control plane from being destroyed, nor are they touched.
func TestContainer_workersOfAControlPlane(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	plane := s.drive(t, "talosop_control_plane")
	config := s.container("shared", newBundle(t))
	config["replicas"] = 1

	plane.ready(t, config)

	drive := func() *driven {
		d := drive(t, "talosop_worker", nil)
		d.Server = plane.Server

		return d
	}

	worker := func(name string) configuration {
		return configuration{
			"cluster": plain(t, attributeOf(t, plane.state, "cluster")), "name": name, "talos_version": "v1.13.0", "replicas": 1,
			"deletion_protection": false,
			"on_destroy":          "preserve",
		}
	}

	first, second := drive(), drive()

	first.ready(t, worker("batch"))

	if done := second.apply(t, worker("batch")); !done.failed() || !second.state.IsNull() ||
		!strings.Contains(show(done.diagnostics), "another resource of this configuration has a pool batch") {
		t.Errorf("the second one of a name: %s", show(done.diagnostics))
	}

	first.expectEmpty(t, "after another one of its name was refused", worker("batch"))
	first.apply(t, nil).must(t)

	pods := s.podUIDs(t)

	if said := show(plane.apply(t, nil).must(t).diagnostics); !strings.Contains(said,
		"Workers are left on the host cluster") || !strings.Contains(said, "batch-0") {
		t.Errorf("the destroy of the control plane says: %s", said)
	}

	if after := s.podUIDs(t); len(after) != 1 || after["shared-batch-0-0"] != pods["shared-batch-0-0"] {
		t.Errorf("pods are left: %v", after)
	}

	for _, object := range s.objects(t, workload.LabelCluster+"=shared") {
		if !strings.HasSuffix(object, "shared-batch-0") && !strings.HasSuffix(object, "shared-batch-0-0") {
			t.Errorf("%s is left", object)
		}
	}
}
