package machineset

import (
	"bytes"
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// obstacle is why machines cannot change from their Talos version to the wanted one. It is comparable, so that
// machines with the same one are named together.
type obstacle struct {
	why *finding.Message
	// The arguments of its message.
	from, to, next, contract, kubernetes, problem, fix string
}

// etcdObstacle says why the etcd of a control plane cannot be downgraded with its Talos. A downgrade from 3.7 to 3.6
// is possible: it is enabled before the first machine is downgraded (cluster.DowngradeEtcd).
func etcdObstacle(from, to machineconfig.TalosVersion) obstacle {
	was, then := etcdstate.OfTalos(from.String()), etcdstate.OfTalos(to.String())

	switch {
	case !versions.Older(then, was):
		return obstacle{}
	case !etcdstate.CanGoBack(was, then):
		return obstacle{why: &talosLosesEtcd, from: from.String(), to: to.String()}
	case to.Minor+1 != from.Minor:
		return obstacle{why: &talosEtcdStep, from: from.String(), to: to.String(),
			next: fmt.Sprintf("v%d.%d", from.Major, from.Minor-1)}
	default:
		return obstacle{}
	}
}

// refuseEtcdImage refuses etcd images in configurations that do not fit the Talos or the data of a control plane.
func refuseEtcdImage(p Set, before renderedOnce, recorded PriorState, files Rendered) finding.List {
	type misfit struct {
		why               *finding.Message
		etcd, runs, talos string
	}

	var (
		diags    finding.List
		machines finding.Alike[misfit]
	)

	for _, name := range p.Names() {
		m, state, pinned := p.Machines[name], recorded.Machines[name], files.Machines[name].Etcd
		if m.Group.Role != step.ControlPlane || pinned == "" {
			continue
		}

		runs := ""
		if state.Access == step.Member {
			old, _ := before() // a configuration that this build cannot render is not compared
			runs = cmp.Or(old.Machines[cmp.Or(recorded.Renamed[name], name)].Etcd, etcdstate.OfTalos(state.TalosVersion))
		}

		if why := etcdImageMisfit(pinned, runs, m.Group.TalosVersion); why != nil {
			machines.Add(misfit{why, pinned, runs, m.Group.TalosVersion}, name)
		}
	}

	for of, names := range machines.All() {
		diags.Append(of.why.At(p.Machines[names[0]].Group.VersionAt, finding.Args{"machines": names, "etcd": of.etcd,
			"running": of.runs, "talos": of.talos, "own": etcdstate.OfTalos(of.talos)}))
	}

	return diags
}

// etcdImageMisfit is the error about an etcd image that does not fit; nil for one that does. Talos up to 1.13 starts
// etcd with arguments that 3.7 no longer has (experimental-initial-corrupt-check). Talos 1.14 uses some that 3.5 does
// not have yet (feature-gates; machined/pkg/system/services/etcd.go of both).
func etcdImageMisfit(pinned, runs, talos string) *finding.Message {
	own := etcdstate.OfTalos(talos)

	switch {
	case versions.Older(own, "3.7") && !versions.Older(pinned, "3.7"):
		return &etcdImageTooNew
	case !versions.Older(own, "3.7") && versions.Older(pinned, "3.6"):
		return &etcdImageTooOld
	case versions.Older(pinned, runs):
		return &etcdImageDowngrade
	default:
		return nil
	}
}

// etcdMinor is the minor version, such as 3.6, of the etcd image in a configuration. It is empty where Talos chooses
// the image, and where the image does not show its version.
func etcdMinor(config []byte) string {
	var main struct {
		Cluster struct {
			Etcd struct {
				Image string `yaml:"image"`
			} `yaml:"etcd"`
		} `yaml:"cluster"`
	}

	// The main document has it with every contract, and comes first (machinery 1.14, v1alpha1.EtcdConfig).
	first, _, _ := bytes.Cut(config, []byte("\n---\n"))
	if !bytes.Contains(first, []byte("etcd")) || expansion.CheckYAML(first) != nil || yaml.Unmarshal(first, &main) != nil {
		return ""
	}

	tag, _ := kubenames.Tag(main.Cluster.Etcd.Image)

	return etcdstate.MinorOf(tag)
}
