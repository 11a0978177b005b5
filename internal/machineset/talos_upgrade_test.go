package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The running versions decide whether a machine can change to a Talos version.
func TestRefuseTalosVersion(t *testing.T) {
	t.Parallel()

	const (
		schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
		kubelet   = "v1.33.1" // Talos 1.10 to 1.14 run it
	)

	back := changing(func(c *Changes) { c.AllowDowngrade = true })

	for name, test := range map[string]struct {
		from, to string
		more     []option
		state    func(s *step.MachineState)
		runs     string // Kubernetes
		says     string // of the worker
		plane    string // of the control plane, where it is another
		next     string // the Talos on the path
	}{
		"the same":            {from: "v1.13.6", to: "v1.13.6"},
		"the next":            {from: "v1.13.6", to: "v1.14.1"},
		"two further":         {from: "v1.12.4", to: "v1.14.1"},
		"not known what runs": {from: "", to: "v1.10.0"},
		"lost its disk":       {from: "v1.14.1", to: "v1.10.0", state: func(s *step.MachineState) { s.Access = step.Maintenance }},
		"no version":          {from: "v1.14.1", to: "next"},
		"changes unknown":     {from: "v1.14.1", to: "v1.10.0", more: []option{func(p *Set) { p.Unknown.Note(UnknownChanges, true) }}},
		"back":                {from: "v1.14.1", to: "v1.13.6", says: "talos_downgrade"},
		"back, asked for":     {from: "v1.14.1", to: "v1.13.6", more: []option{back}},
		"back with other etcd": {from: "v1.11.6", to: "v1.10.9", more: []option{back}, runs: kubelet,
			plane: "talos_loses_etcd"},
		"back below the contract": {from: "v1.14.1", to: "v1.12.4", more: []option{back, contract("v1.13")}, says: "talos_older_than_contract"},
		"back without a contract": {from: "v1.14.1", to: "v1.13.6", more: []option{back, contract("")}},
		"another schematic": {from: "v1.14.1", to: "v1.14.1", state: func(s *step.MachineState) { s.Platform = cluster.PlatformContainer },
			more: []option{group("batch/w-1", func(g *Group) { g.Schematic = schematic })}, says: "talos_in_container"},
		"the schematic that runs": {from: "v1.14.1", to: "v1.14.1", state: func(s *step.MachineState) {
			s.Platform, s.Schematic = cluster.PlatformContainer, schematic
		}, more: []option{group("batch/w-1", func(g *Group) { g.Schematic = schematic })}},
		"a container": {from: "v1.13.6", to: "v1.14.1", state: func(s *step.MachineState) { s.Platform = cluster.PlatformContainer },
			says: "talos_in_container"},
		"too far":              {from: "v1.4.0", to: "v1.14.1", runs: kubelet, says: "talos_installer_refuses", next: "v1.10.9"},
		"Kubernetes too new":   {from: "v1.10.1", to: "v1.12.4", runs: "v1.35.2", says: "talos_without_kubernetes", next: "v1.11.6"},
		"Kubernetes as wanted": {from: "v1.10.1", to: "v1.12.4", more: []option{kubernetes("v1.36.0")}, says: "talos_without_kubernetes", next: "v1.11.6"},
		"a chosen release": {from: "v1.12.4", to: "v1.14.1", more: []option{changing(func(c *Changes) {
			via, _ := machineconfig.ReadTalosVersion("v1.13.1")
			c.Via = []machineconfig.TalosVersion{via}
		}), kubernetes("v1.99.0")}, says: "talos_without_kubernetes", next: "v1.13.1"},
	} {
		options := append([]option{controlPlanes(1), workers("batch", 1), talos(test.to), contract("v1.10")}, test.more...)
		p := aSet(t, options...)
		r := recordOf(p)

		for machine := range r.Machines {
			r.member(machine, func(s *step.MachineState) {
				s.TalosVersion = test.from
				if test.runs != "" {
					s.Images = imagesAt("kubelet", test.runs)
				}
			})
		}

		if test.state != nil {
			r.member("batch/w-1", test.state).member("cp-1", func(s *step.MachineState) { *s = step.MachineState{} })
		}

		for machine, says := range map[string]string{"batch/w-1": test.says, "cp-1": test.says + test.plane} {
			if p.Unknown.Has(UnknownChanges) || machine == "cp-1" && (test.state != nil || says == "" && test.plane == "") {
				continue
			}

			got := p.obstacle(p.Machines[machine], r.Machines[machine], PriorState{Record: r}.kubernetesOn(machine, nil, machineconfig.KubernetesVersion{}))
			same(t, name+", "+machine, got.code(), says)
			same(t, name+", "+machine+", next", got.next, test.next)
		}

		var want []string

		if !p.Unknown.Has(UnknownChanges) {
			if test.says+test.plane != "" && test.state == nil {
				want = append(want, "Error control_plane.talos_version: "+test.says+test.plane)
			}

			if test.says != "" {
				want = append(want, `Error workers["batch"].talos_version: `+test.says)
			}
		}

		expect(t, name, refuseTalosVersion(p, PriorState{Record: r}), want)
	}

	// A pod needs another image.
	p := aSet(t, pods(1, 0), talos("v1.14.1"))
	state := step.MachineState{Access: step.Member, TalosVersion: "v1.13.6", Platform: cluster.PlatformContainer, Images: kubenames.Images{}}
	same(t, "a pod", p.obstacle(p.Machines["cp-0"], state, nil), obstacle{})
}

// code is that of the message of an obstacle; empty for none.
func (o obstacle) code() string {
	if o.why == nil {
		return ""
	}

	return o.why.Code
}
