package rotation

import "slices"

// Holder is a machine of the cluster, by what is known of it.
type Holder struct {
	// Name is what it is called where it is in the way.
	Name         string `json:"name"`
	ControlPlane bool   `json:"control_plane,omitempty"`
	// Keys are those that it carries; zero where nobody knows.
	Keys Keys `json:"keys,omitzero"`
	// Settled is false for one that has not begun to work with its keys yet.
	Settled bool `json:"-"`
}

// Cluster is every machine that is a part of the cluster, however it is known: those of a resource, and all others.
type Cluster []Holder

// Distinct is the cluster with one holder of each kind, which decides the same: of a large one that is a few.
func (c Cluster) Distinct() Cluster {
	var out Cluster

	seen := map[Holder]bool{}

	for _, h := range c {
		h.Name = ""

		if !seen[h] {
			seen[h] = true
			out = append(out, h)
		}
	}

	return out
}

// InTheWay names the machines for which others cannot go on to what is wanted of control planes: those that do not
// accept a wanted authority, and those that still use another one.
func (c Cluster) InTheWay(wanted Keys) []string {
	var names []string

	for _, h := range c {
		if h.Keys.Talos.Issuing != wanted.Talos.Issuing || h.Keys.Kubernetes.Issuing != wanted.Kubernetes.Issuing {
			names = append(names, h.Name)
		}
	}

	return names
}

// Ahead are the holders of other resources once their control planes have done what they can beside workers, whose
// resource follows theirs. wanted is what is wanted of the workers.
func (c Cluster) Ahead(workers Cluster, wanted Keys) Cluster {
	all := slices.Concat(workers, c)
	others := all[len(workers):]

	// No node tells its keys before any of them was turned over.
	if len(workers) > 0 && others.everyone(func(h Holder) bool { return h.Keys == (Keys{}) }) {
		for i := range others {
			others[i].Keys = workers[0].Keys
		}
	}

	all.advance(wanted)

	return others
}

// advance lets control planes carry what they can while all others stay as they are.
func (c Cluster) advance(wanted Keys) {
	for range 3 * len(c) { // moves, one machine after the other
		moved := false

		for i, h := range c {
			if !h.ControlPlane {
				continue
			}

			own := wanted
			own.Aggregator, own.ServiceAccount, own.PodTokens = h.Keys.Aggregator, h.Keys.ServiceAccount, h.Keys.PodTokens

			if next := c.Next(h.Keys, own, true); next != h.Keys {
				c[i].Keys, moved = next, true
			}
		}

		if !moved {
			break
		}
	}
}

// Next are the keys that a machine carries after its next change: has, or what is one safe move nearer to wanted.
//
// For a machine that is no part of the cluster yet has is zero; it begins with what the others work with. The machine
// itself is among the cluster when it is a part of it.
func (c Cluster) Next(has, wanted Keys, controlPlane bool) Keys {
	if has == wanted && c.agree(wanted) {
		return wanted
	}

	next := wanted

	// A kubelet gets new tokens for its pods when it starts. Those that it gets while an API server signs with the former
	// key are of no use to the others.
	if !c.controlPlanes(func(h Holder) bool { return h.Keys.ServiceAccount == wanted.PodTokens }) && has != (Keys{}) {
		next.PodTokens = has.PodTokens
	}

	if controlPlane {
		next.Talos = c.authority(has.Talos, wanted.Talos, talosOf, c.talosInUse())
		next.Kubernetes = c.authority(has.Kubernetes, wanted.Kubernetes, kubernetesOf, c.kubernetesInUse())

		return next
	}

	next.Talos = c.workersTalos(has.Talos, wanted.Talos)
	next.Kubernetes = c.workersKubernetes(has.Kubernetes, wanted.Kubernetes)
	next.ClusterToken = c.token(has.ClusterToken, wanted.ClusterToken)

	return next
}

// agree is whether everybody carries the wanted authorities and no others, which is how it is when nothing is turned
// over.
func (c Cluster) agree(wanted Keys) bool {
	return !slices.ContainsFunc(c, func(h Holder) bool {
		return h.Keys.Talos.Issuing != wanted.Talos.Issuing || h.Keys.Kubernetes.Issuing != wanted.Kubernetes.Issuing
	})
}

func talosOf(k Keys) Trust      { return k.Talos }
func kubernetesOf(k Keys) Trust { return k.Kubernetes }

// authority is one authority of a control plane: it issues with the new one once everybody accepts that, and accepts
// what is in use somewhere.
func (c Cluster) authority(has, wanted Trust, of func(Keys) Trust, used Set) Trust {
	next := Trust{Issuing: wanted.Issuing}
	if !c.everyone(func(h Holder) bool { return of(h.Keys).Trusts(wanted.Issuing) }) {
		next.Issuing = c.presentOf(has, wanted, of)
	}

	kept := used.within(has.all())
	if has == (Trust{}) {
		kept = used.within(c.trusted(of))
	}

	next.Accepted = wanted.Accepted.With(wanted.Issuing).With(kept.IDs()...).With(has.Issuing).Without(next.Issuing)
	if !used.Has(has.Issuing) && !wanted.Accepted.Has(has.Issuing) {
		next.Accepted = next.Accepted.Without(has.Issuing)
	}

	return next
}

// presentOf is what a machine issues with until everybody accepts the wanted authority: what it has, or for one that
// joins what the control planes have.
func (c Cluster) presentOf(has, wanted Trust, of func(Keys) Trust) string {
	if has.Issuing != "" {
		return has.Issuing
	}

	for _, h := range c {
		if issuing := of(h.Keys).Issuing; h.ControlPlane && issuing != "" {
			return issuing
		}
	}

	return wanted.Issuing
}

// talosInUse are the authorities that certificates of the Talos API are signed with somewhere. A worker whose own
// certificate is signed by the former one is answered by clients with certificates of the former one.
func (c Cluster) talosInUse() Set {
	return c.inUse(func(h Holder) Set { return SetOf(h.Keys.Talos.Issuing) })
}

// kubernetesInUse are the authorities that certificates are signed with which Kubernetes gets or shows: those of API
// servers, and those of the kubelets of workers. A kubelet keeps a client certificate of an authority for as long as
// its machine accepts that one (Talos 1.13, k8s.KubeletServiceController, refreshKubeletCerts).
func (c Cluster) kubernetesInUse() Set {
	return c.inUse(func(h Holder) Set {
		if h.ControlPlane {
			return SetOf(h.Keys.Kubernetes.Issuing)
		}

		return h.Keys.Kubernetes.all()
	})
}

// inUse is what the machines use; everything that anybody accepts while one is there of which nobody knows it.
func (c Cluster) inUse(of func(Holder) Set) Set {
	var used Set

	for _, h := range c {
		if h.Keys == (Keys{}) {
			return c.trusted(talosOf).With(c.trusted(kubernetesOf).IDs()...)
		}

		used = used.With(of(h).IDs()...)
	}

	return used
}

func (c Cluster) trusted(of func(Keys) Trust) Set {
	var all Set

	for _, h := range c {
		all = all.With(of(h.Keys).all().IDs()...)
	}

	return all
}

// workersTalos is the authority of the Talos API on a worker. What it accepts is what the control plane says that
// signed its certificate, and it asks for one when its configuration changes (Talos 1.13, secrets.APIController,
// generateWorker): so it follows the control planes in every move.
func (c Cluster) workersTalos(has, wanted Trust) Trust {
	next := Trust{Issuing: wanted.Issuing}

	if !c.everyone(func(h Holder) bool { return h.Keys.Talos.Trusts(wanted.Issuing) }) ||
		!c.controlPlanes(func(h Holder) bool { return h.Keys.Talos.Issuing == wanted.Issuing }) {
		next.Issuing = c.presentOf(has, wanted, talosOf)
	}

	next.Accepted = c.followed(has, wanted, talosOf)

	kept := c.ofControlPlanes(func(h Holder) Set { return h.Keys.Talos.all() })
	if has != (Trust{}) {
		kept = kept.within(has.all())
	}

	next.Accepted = next.Accepted.With(kept.IDs()...).Without(next.Issuing)

	return next
}

// followed are the wanted authorities that a worker accepts: what it has, and what every control plane accepts by now.
func (c Cluster) followed(has, wanted Trust, of func(Keys) Trust) Set {
	return SetOf(slices.DeleteFunc(wanted.all().IDs(), func(id string) bool {
		return has != (Trust{}) && !has.Trusts(id) &&
			!c.controlPlanes(func(h Holder) bool { return of(h.Keys).Trusts(id) })
	})...)
}

// workersKubernetes is the authority of Kubernetes on a worker. It drops the former one as soon as every API server
// has a certificate of the new one: its kubelet gets a new client certificate then, while the API servers accept both.
func (c Cluster) workersKubernetes(has, wanted Trust) Trust {
	next := Trust{Issuing: wanted.Issuing}
	if !c.controlPlanes(func(h Holder) bool { return h.Keys.Kubernetes.Issuing == wanted.Issuing }) {
		next.Issuing = c.presentOf(has, wanted, kubernetesOf)
	}

	kept := c.ofControlPlanes(func(h Holder) Set { return SetOf(h.Keys.Kubernetes.Issuing) })
	if has != (Trust{}) {
		kept = kept.within(has.all())
	}

	// So it is given both authorities' new ones with one change.
	next.Accepted = c.followed(has, wanted, kubernetesOf)

	next.Accepted = next.Accepted.With(kept.IDs()...).Without(next.Issuing)

	return next
}

// token is the bootstrap token of a worker: it is of use once every control plane has made its Secret.
func (c Cluster) token(has, wanted string) string {
	of := func(k Keys) string { return k.ClusterToken }

	if c.controlPlanes(func(h Holder) bool { return of(h.Keys) == wanted }) {
		return wanted
	}

	if has != "" {
		return has
	}

	for _, h := range c {
		if h.ControlPlane && of(h.Keys) != "" {
			return of(h.Keys)
		}
	}

	return wanted
}

func (c Cluster) everyone(is func(Holder) bool) bool {
	return !slices.ContainsFunc(c, func(h Holder) bool { return !is(h) })
}

// controlPlanes is whether every control plane is so, and has begun to work with its keys.
func (c Cluster) controlPlanes(is func(Holder) bool) bool {
	return c.everyone(func(h Holder) bool { return !h.ControlPlane || h.Settled && is(h) })
}

func (c Cluster) ofControlPlanes(of func(Holder) Set) Set {
	var all Set

	for _, h := range c {
		if h.ControlPlane {
			all = all.With(of(h).IDs()...)
		}
	}

	return all
}
