package rotation

import "slices"

// Holder is a machine of the cluster, as far as it is known.
type Holder struct {
	// Name is how messages name the machine.
	Name         string `json:"name"`
	ControlPlane bool   `json:"control_plane,omitempty"`
	// Keys are those of the machine; zero where they are unknown.
	Keys Keys `json:"keys,omitzero"`
	// Settled is false for a machine that does not use its keys yet.
	Settled bool `json:"-"`
}

// Cluster is every known machine of the cluster: those of a resource and all others.
type Cluster []Holder

// Distinct is the cluster with one holder of each kind. It leads to the same decisions and is small even for a large
// cluster.
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

// Blocking names the machines that block the wanted keys of control planes: those that do not accept a wanted
// authority, and those that still use another one.
func (c Cluster) Blocking(wanted Keys) []string {
	var names []string

	for _, h := range c {
		if h.Keys.Talos.Issuing != wanted.Talos.Issuing || h.Keys.Kubernetes.Issuing != wanted.Kubernetes.Issuing {
			names = append(names, h.Name)
		}
	}

	return names
}

// Ahead are the holders of other resources after their control planes made every possible move; the workers follow
// them. wanted is for the workers.
func (c Cluster) Ahead(workers Cluster, wanted Keys) Cluster {
	all := slices.Concat(workers, c)
	others := all[len(workers):]

	// Nodes report no keys before the first rotation.
	if len(workers) > 0 && others.all(func(h Holder) bool { return h.Keys == (Keys{}) }) {
		for i := range others {
			others[i].Keys = workers[0].Keys
		}
	}

	all.advance(wanted)

	return others
}

// advance makes every possible move of control planes while all other machines stay as they are.
func (c Cluster) advance(wanted Keys) {
	for range 3 * len(c) { // moves of one machine after another
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

// Next are the keys of a machine after its next change: has, or one safe move closer to wanted.
//
// For a machine that has not joined yet, has is zero, and it begins with the keys that the others use. A machine that
// is part of the cluster is in c too.
func (c Cluster) Next(has, wanted Keys, controlPlane bool) Keys {
	if has == wanted {
		return wanted // no rule would change it
	}

	next := wanted

	// A kubelet gets new tokens for its pods when it starts. Tokens that an API server signs with the former key are
	// rejected by the others.
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

func talosOf(k Keys) Trust      { return k.Talos }
func kubernetesOf(k Keys) Trust { return k.Kubernetes }

// authority is one authority of a control plane. It issues with the new authority once all machines accept it, and
// accepts every authority in use.
func (c Cluster) authority(has, wanted Trust, of func(Keys) Trust, used Set) Trust {
	next := Trust{Issuing: wanted.Issuing}
	if !c.all(func(h Holder) bool { return of(h.Keys).Trusts(wanted.Issuing) }) {
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

// presentOf is the authority that a machine issues with until all machines accept the wanted one: its own, or that of
// the control planes for a machine that joins.
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

// talosInUse are the authorities that signed certificates of the Talos API. A worker with a certificate of the former
// authority accepts clients with certificates of the former one.
func (c Cluster) talosInUse() Set {
	return c.inUse(func(h Holder) Set { return SetOf(h.Keys.Talos.Issuing) })
}

// kubernetesInUse are the authorities of certificates that Kubernetes receives or presents: those of API servers, and
// those of worker kubelets. A kubelet keeps its client certificate as long as its machine accepts the authority
// (Talos 1.13, k8s.KubeletServiceController, refreshKubeletCerts).
func (c Cluster) kubernetesInUse() Set {
	return c.inUse(func(h Holder) Set {
		if h.ControlPlane {
			return SetOf(h.Keys.Kubernetes.Issuing)
		}

		return h.Keys.Kubernetes.all()
	})
}

// inUse is what the machines use. While one machine is unknown, it is everything that any machine accepts.
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

// workersTalos is the authority of the Talos API on a worker. The worker accepts what the control plane that signed
// its certificate names, and requests a certificate when its configuration changes (Talos 1.13,
// secrets.APIController, generateWorker). So it follows the control planes in every move.
func (c Cluster) workersTalos(has, wanted Trust) Trust {
	next := Trust{Issuing: wanted.Issuing}

	if !c.all(func(h Holder) bool { return h.Keys.Talos.Trusts(wanted.Issuing) }) ||
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

// followed are the wanted authorities that a worker accepts: those it has, and those that every control plane
// accepts.
func (c Cluster) followed(has, wanted Trust, of func(Keys) Trust) Set {
	return SetOf(slices.DeleteFunc(wanted.all().IDs(), func(id string) bool {
		return has != (Trust{}) && !has.Trusts(id) &&
			!c.controlPlanes(func(h Holder) bool { return of(h.Keys).Trusts(id) })
	})...)
}

// workersKubernetes is the Kubernetes authority on a worker. The worker drops the former authority as soon as every
// API server has a certificate of the new one. Its kubelet then gets a new client certificate, while the API servers
// accept both.
func (c Cluster) workersKubernetes(has, wanted Trust) Trust {
	next := Trust{Issuing: wanted.Issuing}
	if !c.controlPlanes(func(h Holder) bool { return h.Keys.Kubernetes.Issuing == wanted.Issuing }) {
		next.Issuing = c.presentOf(has, wanted, kubernetesOf)
	}

	kept := c.ofControlPlanes(func(h Holder) Set { return SetOf(h.Keys.Kubernetes.Issuing) })
	if has != (Trust{}) {
		kept = kept.within(has.all())
	}

	// One change gives it the new authorities of both.
	next.Accepted = c.followed(has, wanted, kubernetesOf)

	next.Accepted = next.Accepted.With(kept.IDs()...).Without(next.Issuing)

	return next
}

// token is the bootstrap token of a worker. It works once every control plane has created its Secret. Until then a
// machine that joins has one that some control plane still has.
func (c Cluster) token(has, wanted string) string {
	of := func(k Keys) string { return k.ClusterToken }

	if c.controlPlanes(func(h Holder) bool { return of(h.Keys) == wanted }) {
		return wanted
	}

	if has != "" {
		return has
	}

	for _, h := range c {
		if token := of(h.Keys); h.ControlPlane && token != "" && token != wanted {
			return token
		}
	}

	return wanted
}

func (c Cluster) all(is func(Holder) bool) bool {
	return !slices.ContainsFunc(c, func(h Holder) bool { return !is(h) })
}

// controlPlanes reports whether is holds for every control plane, and each uses its keys.
func (c Cluster) controlPlanes(is func(Holder) bool) bool {
	return c.all(func(h Holder) bool { return !h.ControlPlane || h.Settled && is(h) })
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
