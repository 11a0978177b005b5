package provider

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A pod network that a patch takes away is as if the attribute `cni` took it: nodes that cannot become Ready are not
// waited for, on each resource that makes machines.
func TestCreate_withoutAPodNetworkByPatch(t *testing.T) {
	t.Parallel()

	const (
		fields    = "cluster: {network: {cni: {name: none}}}\n"
		documents = "apiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\n$patch: delete\n"
	)

	for version, patch := range map[string]string{"v1.13.0": fields, "v1.14.1": documents} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			s := newSiteWith(t, sim.Options{TalosVersion: version}, 1, 3)
			quick := func(config configuration) configuration {
				config["talos_version"] = version

				return with(config, configuration{"create": "1m", "delete": "2m"}, "timeouts")
			}

			create := func(kind string, config configuration) *driven {
				d := driveOn(t, quickProviderData(), kind)
				d.ready(t, quick(config))

				return d
			}

			plane := create("talosop_control_plane",
				with(s.planeConfig(bundleOnce(), s.controlPlane...), []any{patch}, "config_patches"))

			// The patch is of the control planes alone: workers find it in the handle.
			joined := create("talosop_worker", configuration{
				"cluster": plain(t, fieldsOf(t, plane.state)["cluster"]),
				"name":    "joined", "install": configuration{"disk": "/dev/sda"}, "deletion_protection": false,
				"machines": configuration{"w-3": configuration{"address": s.workers[2].Address().String()}},
			})

			joined.apply(t, nil).must(t)
			plane.apply(t, nil).must(t)

			whole := create("talosop_cluster", with(s.onMachines(s.endpoint, s.controlPlane, s.workers[:1]),
				[]any{patch}, "control_plane", "config_patches"))
			whole.apply(t, nil).must(t)

			one := with(s.oneMachineConfig(bundleOnce(), "controlplane", s.controlPlane[0]), []any{patch}, "config_patches")
			one = with(with(one, version[:len("v1.13")], "cluster", "version_contract"), true, "bootstrap")
			create("talosop_machine", one)

			worker := func(m *sim.Machine) configuration {
				return with(with(s.oneMachineConfig(bundleOnce(), "worker", m),
					version[:len("v1.13")], "cluster", "version_contract"), []any{patch}, "cluster", "config_patches")
			}

			create("talosop_machine", worker(s.workers[0]))

			create("talosop_worker", configuration{
				"cluster": worker(s.workers[1])["cluster"],
				"name":    "batch", "install": configuration{"disk": "/dev/sda"}, "deletion_protection": false,
				"machines": configuration{"w-2": configuration{"address": s.workers[1].Address().String()}},
			})
		})
	}
}
