package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// explored are the changes, each with the cluster that it begins with.
var explored = map[string]func(controlPlanes, workers, faults int) *world{
	"create": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.want.Bootstrapped = false
		w.addAll(controlPlanes, workers, true)

		return w
	},
	"grow": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(1, 0, false)

		for i := range controlPlanes - 1 {
			w.add(fmt.Sprintf("cp-%d", i+2), step.ControlPlane, true)
		}

		w.addAll(0, workers, true)

		return w
	},
	"shrink": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(max(1, controlPlanes-1), max(0, workers-1), false)

		if controlPlanes > 1 {
			w.remove("old-cp", step.ControlPlane)
		}

		if workers > 0 {
			w.remove("old-w", step.Worker)
		}

		return w
	},
	"replace": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.addAll(controlPlanes-1, workers, false)
		w.remove("old-cp", step.ControlPlane)
		w.add("new-cp", step.ControlPlane, true)

		return w
	},
	"upgrade": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion = "v1.12.3"
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"upgrade over two minors": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion, w.mid = "v1.11.6", []cluster.Release{{Version: "v1.12.4"}}
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"upgrade with a canary": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion = "v1.12.3"
		w.addAll(controlPlanes, workers, false)
		w.canary()

		return w
	},
	"kubernetes with a canary": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.upgradeKubernetes()
		w.addAll(controlPlanes, workers, false)
		w.canary()

		return w
	},
	"downgrade of etcd": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.old.TalosVersion, w.new.TalosVersion, w.new.AllowDowngrade = "v1.14.1", "v1.13.6", true
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"kubernetes": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.upgradeKubernetes()
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"configuration": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.digest = "old"
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"configuration with a reboot": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.digest, w.reboot = "old", true
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"restore": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.want.RestoreFrom = "key"
		w.addAll(controlPlanes, workers, true)

		return w
	},
	"rotate": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.rotate("old", "new+old")
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"drop former keys": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.rotate("new+old", "new")
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"rotate and grow": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.rotate("old", "new+old")
		w.addAll(max(1, controlPlanes-1), workers, false)

		// No worker joins. One that does before the control planes accept the new Talos CA refuses clients with
		// certificates of it until it boots again, which the planner does not prevent yet.
		if controlPlanes > 1 {
			w.add("new-cp", step.ControlPlane, true)
		}

		return w
	},
	"destroy": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.destroys, w.policy.KeepNodes = true, true
		w.addAll(controlPlanes, workers, false)

		return w
	},
	"destroy workers": func(controlPlanes, workers, faults int) *world {
		w := newWorld(faults)
		w.destroys = true

		for i := range controlPlanes {
			b := w.newBox(fmt.Sprintf("cp-%d", i+1), step.ControlPlane)
			b.others = true
			w.lives(b)
		}

		w.addAll(0, workers, false)

		return w
	},
}

// rotate makes the machines that are added then change their keys.
func (w *world) rotate(had, wanted string) {
	w.want.Rotates, w.had, w.wantedKeys = true, had, wanted
}

// keysFor are the keys of a machine in a rotation, such as "new+old". Only control planes have a former Kubernetes CA
// then, because a worker drops it once every API server uses the new one. No key is named for pods before it is rotated.
func keysFor(role step.Role, text string) rotation.Keys {
	if text == "" {
		return rotation.Keys{}
	}

	issuing, accepted, _ := strings.Cut(text, "+")
	trust := rotation.Trust{Issuing: issuing, Accepted: rotation.Set(accepted)}
	keys := rotation.Keys{Talos: trust, Kubernetes: trust, ClusterToken: issuing}

	if issuing != "old" {
		keys.PodTokens = issuing
	}

	if role == step.ControlPlane {
		keys.Aggregator, keys.ServiceAccount = issuing, issuing
	} else if accepted == "old" {
		keys.Kubernetes.Accepted = ""
	}

	return keys
}

// hasKeys gives a machine the keys from before a rotation. Nodes report keys once a rotation began.
func (w *world) hasKeys(b *box) {
	if w.had == "" {
		return
	}

	role := step.Worker
	if b.controlPlane {
		role = step.ControlPlane
	}

	b.keys = keysFor(role, w.had)
	b.signed, b.client, b.kube.keys = accepted(keysFor(step.ControlPlane, w.had).Talos), b.keys.Kubernetes.Issuing, ofPods(b.keys)

	if w.had != "old" {
		b.noted = b.keys
		w.nodeOf(b).keys = b.keys
	}
}

// upgradeKubernetes makes the machines that are added then want the next minor version.
func (w *world) upgradeKubernetes() {
	w.kube.alone, w.kube.versions = false, []string{"v1.35.4", "v1.36.3"}
	w.wantedVersion, w.manifests = "v1.36.3", "v1.35.4"
	w.want.Kubernetes = cluster.KubernetesSpec{Version: "v1.36.3", Manifests: "v1.35.4"}
}

// canary makes a pool of the first worker, which changes before the others.
func (w *world) canary() {
	w.want.Canary = cluster.Canary{Pool: "canary", Soak: 30 * time.Minute}

	for i, m := range w.want.Machines {
		if m.Name == "w-1" {
			w.want.Machines[i].Pool = "canary"
		}
	}

	w.want.Owner = "us"

	for _, n := range w.nodes {
		n.marked = true
	}
}

func (w *world) addAll(controlPlanes, workers int, blank bool) {
	for i := range controlPlanes {
		w.add(fmt.Sprintf("cp-%d", i+1), step.ControlPlane, blank)
	}

	for i := range workers {
		w.add(fmt.Sprintf("w-%d", i+1), step.Worker, blank)
	}
}

// begun is the world at the beginning of the first apply.
func (w *world) begun() *world {
	w.whole = true

	for _, m := range w.members {
		w.etcd.cluster = m.box.etcdMinor()
		m.box.dataOf = w.etcd.cluster
	}

	w.beginProxy()
	w.watch = w.beginRun()
	w.decide()

	return w
}

// newWorld is a cluster without machines, and what is wanted for it.
func newWorld(faults int) *world {
	s := &site{random: rand.New(firstChoice{}), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		pinned: map[string]string{}, pins: map[naming]string{}}
	t := &trial{random: s.random, judge: &judge{site: s, meant: map[string]*box{},
		soaking: soaking{unsoaked: map[string]time.Time{}}}, policy: cluster.DefaultPolicy(),
		created: true, digest: newDigest}

	t.policy.RegisterTimeout = 24 * time.Hour // an hour passes while machines boot, and no node is ever lost
	t.old.TalosVersion, t.old.Schematic = "v1.13.0", "s1"
	t.new = t.old
	t.want = cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true, Pools: map[string]cluster.Budget{}}
	t.kube = kubeChange{before: naming{registry: "registry.k8s.io"}, then: naming{registry: "registry.k8s.io"},
		versions: []string{"v1.35.4"}, alone: true}
	t.joinVersion, t.joinNaming, t.wanted = "v1.35.4", t.kube.before, t.kube.then

	return &world{trial: t, left: faults}
}

// add adds a wanted machine. A blank one is not in the cluster yet.
func (w *world) add(name string, role step.Role, blank bool) {
	b := w.newBox(name, role)
	w.meant[name] = b

	m := cluster.Machine{Name: name, Role: role, Wanted: cluster.Wanted{Address: b.addr},
		Configured: cluster.Configured{ConfigDigest: newDigest, Keys: keysFor(role, w.wantedKeys)},
		Installation: cluster.Installation{InstallTarget: "/dev/sda", TalosVersion: w.new.TalosVersion,
			Schematic: w.new.Schematic, Via: w.mid, AllowDowngrade: w.new.AllowDowngrade},
	}

	if !w.kube.alone {
		m.Images = w.images(role, w.kube.final(), w.kube.then)
	}

	if !blank {
		w.lives(b)
		m.UUID, m.NodeName = b.uuid, b.name
	}

	w.want.Machines = append(w.want.Machines, m)
}

// remove adds a machine of the cluster that the resource gave up.
func (w *world) remove(name string, role step.Role) {
	b := w.newBox(name, role)
	w.meant[name] = b
	w.lives(b)

	w.want.Removed = append(w.want.Removed, cluster.Machine{Name: name, Role: role,
		Wanted:     cluster.Wanted{Address: b.addr, UUID: b.uuid},
		Remembered: cluster.Remembered{NodeName: b.name, MemberID: b.member}})
}

// lives makes a box part of the cluster, with the configuration and the versions from before the change.
func (w *world) lives(b *box) {
	b.life, b.version, b.schematic, b.digest, b.needsReboot = running, w.old.TalosVersion, w.old.Schematic, w.digest,
		w.reboot
	w.register(b)
	w.hasKeys(b)
	w.liveKubernetes(b)

	if b.controlPlane {
		w.addMember(b, false)
	}
}
