package sim

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// kubeletConfig is what a kubelet is started with.
type kubeletConfig struct {
	image   string
	Version string // of the KubeletSpec resource
}

// runControllers lets the resources about Kubernetes follow the configuration, as
// machined's controllers do: a moment after it.
func (b *boot) runControllers(ctx context.Context) {
	for {
		changed := b.Changed.Next()
		b.render()

		select {
		case <-ctx.Done():
			return
		case <-changed:
		}

		if timing.Pause(ctx, b.m.Delays.Render) != nil {
			return
		}
	}
}

// render writes the resources about Kubernetes that follow from the configuration.
func (b *boot) render() {
	b.rendering.Lock()
	defer b.rendering.Unlock()

	cfg := b.Config()

	b.publishKubelet()

	if !b.ControlPlane() {
		return
	}

	b.publishControlPlane(cfg)

	if err := b.publishManifests(cfg); err != nil {
		b.World.Logf("%s: render manifests: %v", b.m.Name(), err)
	}

	b.World.Lock()
	started := b.staticPods != nil
	b.World.Unlock()

	if !started {
		return // machined serves them once etcd was healthy
	}

	if err := b.publishStaticPods(); err != nil {
		b.World.Logf("%s: render static pods: %v", b.m.Name(), err)
	}
}

// publishKubelet writes what the kubelet runs with (Talos 1.13, k8s/kubelet_spec.go); a
// change restarts it.
func (b *boot) publishKubelet() {
	kubelet := b.Config().Machine().Kubelet()

	args := []string{"--hostname-override=" + b.Nodename(), "--node-ip=" + b.m.Address().String()}
	args = append(args, flags(kubelet.ExtraArgs())...)

	config := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	for field, value := range kubelet.ExtraConfig() {
		config[field] = value
	}

	spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	machined.Modify(b.Boot, spec, func(r *k8s.KubeletSpec) {
		s := r.TypedSpec()
		s.Image, s.Args, s.Config, s.ExpectedNodename = kubelet.Image(), args, config, b.Nodename()
	})

	version, err := machined.Read(b.Boot, spec, func(*k8s.KubeletSpec) {})
	if err != nil {
		b.World.Logf("%s: %v", b.m.Name(), err)

		return
	}

	b.Mu.Lock()
	changed := b.kubelet.Version != version
	b.kubelet = kubeletConfig{image: kubelet.Image(), Version: version}
	b.Mu.Unlock()

	if changed {
		b.rendered.Ring()
	}
}

// kubeletWanted is what the kubelet is to run with, and a channel that is closed when
// that changes.
func (b *boot) kubeletWanted() (kubeletConfig, <-chan struct{}) {
	changed := b.rendered.Next()

	b.Mu.Lock()
	defer b.Mu.Unlock()

	return b.kubelet, changed
}
