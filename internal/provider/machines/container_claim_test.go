package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Two resources of one name would have the same pods: the second one is refused. Preserved workers do not block the
// destroy of their control plane, and are not touched.
func TestContainer_workersOfAControlPlane(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	plane := s.drive(t, "talosop_control_plane")
	config := s.container("shared", tftest.NewBundle(t))
	config["replicas"] = 1

	plane.Ready(t, config)

	drive := func() *tftest.Driven {
		d := tftest.Drive(t, "talosop_worker", nil)
		d.Server = plane.Server

		return d
	}

	worker := func(name string) tftest.Config {
		return tftest.Config{
			"cluster": tftest.Plain(t, tftest.AttributeOf(t, plane.State, "cluster")), "name": name, "talos_version": "v1.13.0",
			"replicas":            1,
			"deletion_protection": false,
			"on_destroy":          "preserve",
		}
	}

	first, second := drive(), drive()

	first.Ready(t, worker("batch"))

	if done := second.Apply(t, worker("batch")); !done.Failed() || !second.State.IsNull() ||
		!strings.Contains(tftest.Show(done.Diagnostics), "another resource of this configuration has a pool batch") {
		t.Errorf("the second one of a name: %s", tftest.Show(done.Diagnostics))
	}

	first.ExpectEmpty(t, "after another one of its name was refused", worker("batch"))
	first.Apply(t, nil).Must(t)

	pods := s.podUIDs(t)

	if diagnostics := tftest.Show(plane.Apply(t, nil).Must(t).Diagnostics); !strings.Contains(diagnostics,
		"[workers_left_on_host]") || !strings.Contains(diagnostics, "batch-0") {
		t.Errorf("the destroy of the control plane says: %s", diagnostics)
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
