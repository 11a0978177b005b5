package machines_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A patch that removes the pod network has the same effect as the attribute `cni`: no resource that creates machines
// waits for nodes that cannot become Ready.
func TestCreate_withoutAPodNetworkByPatch(t *testing.T) {
	t.Parallel()

	const (
		fields    = "cluster: {network: {cni: {name: none}}}\n"
		documents = "apiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\n$patch: delete\n"
	)

	for version, patch := range map[string]string{"v1.13.0": fields, "v1.14.1": documents} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			s := sitetest.NewWith(t, sim.Options{TalosVersion: version}, 1, 3)
			quick := func(config tftest.Config) tftest.Config {
				config["talos_version"] = version

				return tftest.With(config, tftest.Config{"create": "1m", "delete": "2m"}, "timeouts")
			}

			create := func(kind string, config tftest.Config) *tftest.Driven {
				d := tftest.DriveWith(t, tftest.QuickProviderData(), kind)
				d.Ready(t, quick(config))

				return d
			}

			plane := create("talosop_control_plane",
				tftest.With(planeConfig(s, tftest.Bundle(), s.ControlPlane...), []any{patch}, "config_patches"))

			// The patch is only for control planes: workers find it in the handle.
			joined := create("talosop_worker", tftest.Config{
				"cluster": tftest.Plain(t, tftest.FieldsOf(t, plane.State)["cluster"]),
				"name":    "joined", "install": tftest.Config{"disk": "/dev/sda"}, "deletion_protection": false,
				"machines": tftest.Config{"w-3": tftest.Config{"address": s.Workers[2].Address().String()}},
			})

			joined.Apply(t, nil).Must(t)
			plane.Apply(t, nil).Must(t)

			whole := create("talosop_cluster", tftest.With(sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers[:1]),
				[]any{patch}, "control_plane", "config_patches"))
			whole.Apply(t, nil).Must(t)

			one := tftest.With(oneMachineConfig(s, tftest.Bundle(), "controlplane", s.ControlPlane[0]), []any{patch},
				"config_patches")
			one = tftest.With(tftest.With(one, version[:len("v1.13")], "cluster", "version_contract"), true, "bootstrap")
			create("talosop_machine", one)

			worker := func(m *sim.Machine) tftest.Config {
				return tftest.With(tftest.With(oneMachineConfig(s, tftest.Bundle(), "worker", m),
					version[:len("v1.13")], "cluster", "version_contract"), []any{patch}, "cluster", "config_patches")
			}

			create("talosop_machine", worker(s.Workers[0]))

			create("talosop_worker", tftest.Config{
				"cluster": worker(s.Workers[1])["cluster"],
				"name":    "batch", "install": tftest.Config{"disk": "/dev/sda"}, "deletion_protection": false,
				"machines": tftest.Config{"w-2": tftest.Config{"address": s.Workers[1].Address().String()}},
			})
		})
	}
}
