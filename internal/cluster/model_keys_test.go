package cluster_test

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// The keys of machines in the model, and who trusts whom with them, as in Talos 1.13: apid uses a new authority at
// once, an API server when its static pod was recreated, and a kubelet keeps its certificate as long as its machine
// accepts the authority (secrets.APIController; k8s.RenderSecretsStaticPodController; k8s.KubeletServiceController).

// keyring is the keys of a machine.
type keyring struct {
	// keys are those of its configuration, and noted those that its node reports: from the first change on.
	keys, noted rotation.Keys
	// signed is what the control plane that signed a worker's certificate accepts.
	signed rotation.Set
	// client is the authority of the certificate of a worker's kubelet.
	client string
}

// stamp identifies the configuration of a static pod.
func stamp(image string, keys rotation.Keys) string {
	if keys == (rotation.Keys{}) {
		return image
	}

	return image + " " + keys.String()
}

// ofPods are the keys that static pods have.
func ofPods(k rotation.Keys) rotation.Keys {
	return rotation.Keys{Kubernetes: k.Kubernetes, Aggregator: k.Aggregator, ServiceAccount: k.ServiceAccount}
}

// renders lets Talos make the static pods for the keys of its configuration, and reports whether they changed.
func (b *box) renders() bool {
	if !b.controlPlane || b.kube.keys == ofPods(b.keys) {
		return false
	}

	b.kube.keys = ofPods(b.keys)

	return true
}

// starts: Talos starts the static pods with the keys of its configuration. On a worker it requests a certificate.
func (s *site) starts(b *box) {
	if !b.controlPlane && b.life != maintenance && b.keys != (rotation.Keys{}) {
		s.signs(b)
	}

	b.renders()

	for c, p := range b.kube.runs {
		if keys := b.kube.keysOf(c); p.keys != keys {
			p.keys = keys
			b.kube.runs = with(b.kube.runs, c, p)
		}
	}
}

// served are the keys that the API server of a control plane uses.
func (b *box) served() rotation.Keys {
	if api, runs := b.kube.runs[kubenames.KubeAPIServer]; runs {
		return api.keys
	}

	return ofPods(b.keys)
}

// getsKeys gives a machine the keys of its new configuration. One that boots starts its pods with them.
func (s *site) getsKeys(b *box, keys rotation.Keys) {
	b.keys, b.noted = keys, keys

	if b.life != maintenance && !b.controlPlane {
		s.signs(b)
	}

	if b.life != running {
		s.starts(b)
	}
}

// signs gives a worker the certificates that control planes sign for it. Any of them may sign. The one is taken whose
// certificate is trusted least.
func (s *site) signs(b *box) {
	planes := s.withKeys(true)
	if len(planes) == 0 {
		return
	}

	b.signed = accepted(planes[0].keys.Talos)
	for _, p := range planes[1:] {
		others := accepted(p.keys.Talos)
		b.signed = rotation.SetOf(slices.DeleteFunc(b.signed.IDs(), func(id string) bool { return !others.Has(id) })...)
	}

	if b.keys.Kubernetes.Trusts(b.client) {
		return
	}

	b.client = planes[0].served().Kubernetes.Issuing

	for _, signer := range planes {
		id := signer.served().Kubernetes.Issuing
		if slices.ContainsFunc(planes, func(p *box) bool { return !p.served().Kubernetes.Trusts(id) }) {
			b.client = id
		}
	}
}

func accepted(t rotation.Trust) rotation.Set { return t.Accepted.With(t.Issuing) }

// withKeys are the machines of a role that are in the cluster, or come back into it: they have keys and a node.
func (s *site) withKeys(controlPlane bool) (boxes []*box) {
	for _, b := range s.boxes {
		if b.controlPlane == controlPlane && !b.foreign && b.keys != (rotation.Keys{}) && s.nodeOf(b) != nil {
			boxes = append(boxes, b)
		}
	}

	return boxes
}

// trusted: no machine rejects another one because of its keys.
func (s *site) trusted() {
	planes, workers := s.withKeys(true), s.withKeys(false)

	for _, other := range planes {
		issuing, serving := other.keys.Talos.Issuing, other.served().Kubernetes

		for _, b := range slices.Concat(planes, workers) {
			if !b.keys.Talos.Trusts(issuing) {
				s.fail("%s refuses the Talos API of %s", b.name, other.name)
			}

			if !b.keys.Kubernetes.Trusts(serving.Issuing) {
				s.fail("the kubelet of %s refuses the API server of %s", b.name, other.name)
			}
		}

		for _, b := range workers {
			if !b.signed.Has(issuing) {
				s.fail("%s refuses clients of %s", b.name, other.name)
			}

			if !serving.Trusts(b.client) {
				s.fail("the API server of %s refuses the kubelet of %s", other.name, b.name)
			}
		}
	}
}

// rekeys: pods get tokens of a key once every API server signs with it, and workers the new token once every control plane
// has it, and with that its Secret is there.
func (j *judge) rekeys(op step.ApplyConfig, b *box) {
	turns := !b.controlPlane && op.Keys.ClusterToken == j.machine(op.Machine).Keys.ClusterToken

	for _, other := range j.withKeys(true) {
		if k := op.Keys.PodTokens; op.Access == step.Member && k != b.keys.PodTokens && other.served().ServiceAccount != k {
			j.fail("%q before the API server of %s signs tokens with that key", op, other.name)
		}

		if turns && other.keys.ClusterToken != op.Keys.ClusterToken {
			j.fail("%q before %s has that token", op, other.name)
		}
	}
}

// keysLeft lists machines whose keys are not the wanted ones.
func (j *judge) keysLeft() (missing []string) {
	for _, m := range j.want.Machines {
		if j.meant[m.Name].keys != m.Keys && m.Keys != (rotation.Keys{}) {
			missing = append(missing, m.Name+": keys")
		}
	}

	return missing
}
