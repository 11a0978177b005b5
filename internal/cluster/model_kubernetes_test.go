package cluster_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// kubeBox is the Kubernetes part of a machine.
type kubeBox struct {
	// images are those of its configuration.
	images kubenames.Images
	// runs is what its kubelet runs, including the kubelet itself. shown is what the API shows of that, which the
	// kubelet reports through the API server of its own machine.
	// The maps are replaced and never changed, because the states of an exploration share them.
	runs  map[kubenames.Component]process
	shown map[kubenames.Component]kubestate.StaticPod
	// faulty are the images, by component, that never work here.
	faulty map[kubenames.Component]string
	// keys are those in the static pods that Talos wants.
	keys rotation.Keys
}

// process is a component that runs, or is about to.
type process struct {
	image string
	ready bool
	timer int
	keys  rotation.Keys // with which a static pod began
}

var staticPods = []kubenames.Component{kubenames.KubeAPIServer, kubenames.KubeControllerManager, kubenames.KubeScheduler}

func newKubeBox() *kubeBox {
	return &kubeBox{
		runs: map[kubenames.Component]process{}, shown: map[kubenames.Component]kubestate.StaticPod{},
		faulty: map[kubenames.Component]string{},
	}
}

// parts are the components that the machine itself runs.
func (k *kubeBox) parts() []kubenames.Component {
	return slices.DeleteFunc(append(slices.Clone(staticPods), kubenames.Kubelet),
		func(c kubenames.Component) bool { return k.images[c] == "" })
}

// begin starts everything at once, as on a machine that has been up for long.
func (k *kubeBox) begin() {
	for _, c := range k.parts() {
		k.runs = with(k.runs, c, process{image: k.images[c], ready: k.faulty[c] != k.images[c], keys: k.keysOf(c)})
	}
}

// works is true for a component that runs and serves, with any image.
func (k *kubeBox) works(c kubenames.Component) bool { return k.runs[c].ready }

// with is a copy of a map with one more value.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	out := maps.Clone(m)
	out[key] = value

	return out
}

// keysOf are those that Talos wants in a component: kubelets read theirs themselves.
func (k *kubeBox) keysOf(c kubenames.Component) (keys rotation.Keys) {
	if c.StaticPod() {
		keys = k.keys
	}

	return keys
}

// proven is true when everything runs with the configured image.
func (k *kubeBox) proven() bool {
	return !slices.ContainsFunc(k.parts(),
		func(c kubenames.Component) bool { return !k.works(c) || k.runs[c].image != k.images[c] })
}

// provenBy is true when everything is observed to run with the configured image. Kubernetes shows only the version of
// a kubelet, which cannot be known for a digest.
func (s *site) provenBy(k *kubeBox) bool {
	return !slices.ContainsFunc(k.parts(), func(c kubenames.Component) bool {
		switch image := k.images[c]; {
		case !k.works(c):
			return true
		case c == kubenames.Kubelet:
			return s.pinned[image] == "" && s.versionOf(k.runs[c].image) != s.versionOf(image)
		default:
			return k.runs[c].image != image
		}
	})
}

// podsWork is the Talos condition for static pods.
func (k *kubeBox) podsWork() bool {
	return !slices.ContainsFunc(k.parts(), func(c kubenames.Component) bool { return c.StaticPod() && !k.works(c) })
}

// servesAPI is true for a machine whose API server answers.
func (s *site) servesAPI(b *box) bool {
	return b.controlPlane && b.life == running && !b.foreign && s.etcdUp(b) && b.kube.works(kubenames.KubeAPIServer)
}

// ticks lets the kubelet of a machine apply its configuration. For a while the old component still runs, and then the
// new one starts.
func (k *kubeBox) ticks(s *site) (moved bool) {
	for _, c := range k.parts() {
		old, runs := k.runs[c]

		p := old
		if !runs {
			p = process{image: k.images[c], timer: s.random.IntN(3), keys: k.keysOf(c)}
		}

		switch outdated := p.image != k.images[c] || p.keys != k.keysOf(c); {
		case outdated && p.timer == 0:
			p.timer = 1 + s.random.IntN(2)
		case outdated && p.timer == 1:
			p = process{image: k.images[c], timer: s.random.IntN(2), keys: k.keysOf(c)}
		case p.timer > 0:
			p.timer--
		case !p.ready && k.faulty[c] != p.image:
			p.ready = true
		}

		if !runs || p != old {
			k.runs, moved = with(k.runs, c, p), true
		}
	}

	return moved
}

// shows updates what the API shows. A node whose kubelet reaches no API server keeps its state, but is not ready.
func (s *site) shows(b *box) (moved bool) {
	if !s.api() || s.nodeOf(b) == nil {
		return false
	}

	through := b.up() && b.kube.works(kubenames.Kubelet) && (!b.controlPlane || s.servesAPI(b))

	if n := s.nodeOf(b); through && n.keys != b.noted {
		n.keys, moved = b.noted, true
	}

	for _, c := range b.kube.parts() {
		old, known := b.kube.shown[c]
		now := old
		now.Ready = false

		if p, runs := b.kube.runs[c]; through && runs {
			now = kubestate.StaticPod{Stamp: stamp(p.image, p.keys), Image: p.image, Ready: p.ready}
		}

		if through && !known || now != old {
			b.kube.shown, moved = with(b.kube.shown, c, now), moved || now != old
		}
	}

	return moved
}

// tickKubernetes lets Kubernetes progress by itself on all machines.
func (s *site) tickKubernetes() (moved bool) {
	for _, b := range s.boxes {
		if b.up() && !b.foreign {
			moved = b.renders() || moved
			moved = b.kube.ticks(s) || moved
		}
	}

	return s.showAll() || moved
}

// showAll updates what the API shows of all machines.
func (s *site) showAll() (moved bool) {
	for _, b := range s.boxes {
		if !b.foreign {
			moved = s.shows(b) || moved
		}
	}

	return moved
}

// How many rounds one component is waited for.
const awaited = 12

// upgradeComponent is the step as in lifecycle: other images in the configuration, and then a wait until Kubernetes
// shows that they run.
func (s *site) upgradeComponent(op *operation, b *box, step step.UpgradeComponent, how failure) {
	effect := func() {
		for _, part := range step.Each() {
			if part.From != part.Image && how == rolledBack {
				b.kube.faulty = with(b.kube.faulty, part.Component, part.Image)
			}

			b.kube.images = withImage(b.kube.images, part.Component, part.Image)
		}

		if how == neverBack {
			b.life = off
		}
	}

	if step.Node != "" {
		s.disrupt(op, b, step.Evacuation, how, effect)
	} else {
		s.simply(op, how, effect)
	}

	if step.Component == kubenames.KubeProxy {
		return
	}

	left := awaited

	var await func() error

	await = func() error {
		left--

		switch n := s.nodeOf(b); {
		case s.api() && n != nil && n.name == step.OnNode && s.showsImage(b, n, step):
			return nil
		case left < 0:
			return errInVain
		default:
			op.phases = append(op.phases, await)

			return nil
		}
	}

	op.phases = append(op.phases, await)
}

// showsImage is what the API must show for the components that are waited for.
func (s *site) showsImage(b *box, n *kubeNode, op step.UpgradeComponent) bool {
	return !slices.ContainsFunc(op.Each(), func(part step.UpgradeComponent) bool {
		shown := b.kube.shown[part.Component]

		switch part.Component {
		case kubenames.KubeProxy:
			return false
		case kubenames.Kubelet:
			return s.versionOf(shown.Image) != s.versionOf(part.Image) || !s.ready(n)
		default:
			return shown.Image != part.Image || !shown.Ready
		}
	})
}

// syncManifests applies the manifests that a machine renders.
func (s *site) syncManifests(op *operation, b *box, step step.SyncManifests, how failure) {
	s.simply(op, how, func() {
		s.manifests, s.madeFrom = step.Version, b.digest
		s.proxy = b.kube.images[kubenames.KubeProxy]
	})

	effect := op.phases[0]
	op.phases[0] = func() error {
		if !s.api() {
			return errAgain
		}

		return effect()
	}
}

// versionOf is the real version of an image, even if it is pinned by a digest.
func (s *site) versionOf(image string) string {
	if version, ok := s.pinned[image]; ok {
		return version
	}

	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	version, _, _ := strings.Cut(tag, "-")

	return version
}

// minorOf is the minor version of an image.
func (s *site) minorOf(image string) int { return minor(s.versionOf(image)) }

func withImage(images kubenames.Images, c kubenames.Component, image string) kubenames.Images {
	out := kubenames.Images{c: image}

	for other, old := range images {
		if other != c {
			out[other] = old
		}
	}

	return out
}
