package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// configOf is the configuration that a machine is given. Its images of Kubernetes are those
// that a member has, since they only change in the order of an upgrade; where it names none, and
// for a machine that joins, those of the version that the cluster runs.
func (r *Runner) configOf(ctx context.Context, o stepRun, s step.ApplyConfig) ([]byte, error) {
	config, ok := r.Configs[o.on.Name]
	if !ok {
		return nil, wait.Permanent(fmt.Errorf("no configuration was rendered for machine %s", o.on.Name))
	}

	images := kubenames.Images{}

	if s.Kubernetes != "" {
		maps.Copy(images, o.on.Images.At(o.want.Kubernetes.Version, s.Kubernetes))
	}

	if s.Access == step.Member {
		maps.Copy(images, o.images)
	}

	config, err := r.withImages(config, images)
	if err != nil {
		return nil, err
	}

	return r.withKeys(ctx, o, config, s)
}

// withKeys sets the keys of a step in a configuration, which has those that the machine is to have in the end.
func (r *Runner) withKeys(ctx context.Context, o stepRun, config []byte, s step.ApplyConfig) ([]byte, error) {
	if s.Keys == (rotation.Keys{}) || s.Keys == o.on.Keys {
		return config, nil
	}

	if r.Keys == nil {
		return nil, wait.Permanent(errors.New("no way to set keys in a configuration"))
	}

	var active []byte

	if s.Access == step.Member {
		var err error
		if active, err = r.Fleet.Machine(o.on).Configuration(ctx); err != nil {
			return nil, err
		}
	}

	out, err := r.Keys(config, active, s.Keys)
	if err != nil {
		return nil, wait.Permanent(fmt.Errorf("set the keys in the configuration: %w", err))
	}

	return out, nil
}

// freshTokens restarts the kubelet of a machine whose pods are to get tokens of another service account key. It comes
// before the configuration that says so: interrupted in between, it happens again.
func (r *Runner) freshTokens(ctx context.Context, o stepRun, s step.ApplyConfig) error {
	if s.Access != step.Member || o.have.Machines[s.Machine].Keys.PodTokens == s.Keys.PodTokens {
		return nil
	}

	return r.Fleet.Machine(o.on).RestartKubelet(ctx)
}

// withImages sets images in a configuration.
func (r *Runner) withImages(config []byte, images kubenames.Images) ([]byte, error) {
	if len(images) == 0 {
		return config, nil
	}

	if r.Images == nil {
		return nil, wait.Permanent(errors.New("no way to set the images of Kubernetes in a configuration"))
	}

	out, err := r.Images(config, images)
	if err != nil {
		return nil, wait.Permanent(fmt.Errorf("set the images of Kubernetes in the configuration: %w", err))
	}

	return out, nil
}

// pullImages fetches what a machine runs itself, one image after the other.
func (r *Runner) pullImages(ctx context.Context, o stepRun, s step.PullImages) error {
	images := o.on.Images.At(o.want.Kubernetes.Version, s.Version)

	for _, c := range kubenames.Components() {
		if c == kubenames.KubeProxy || images[c] == "" {
			continue
		}

		if err := r.Fleet.Machine(o.on).PullComponent(ctx, c, images[c]); err != nil {
			return err
		}
	}

	return nil
}

// upgradeComponent gives a component its image and waits until it runs. What it waits for
// does not depend on who set the image: after an interruption the same step waits on.
func (r *Runner) upgradeComponent(ctx context.Context, o stepRun, s step.UpgradeComponent) error {
	effect := func(ctx context.Context) error { return r.setImage(ctx, o.on, s.Component, s.Image) }

	if s.Component == kubenames.KubeAPIServer && s.From != s.Image {
		if err := r.awaitOthers(ctx, o.have, s.OnNode); err != nil {
			return err
		}
	}

	if err := r.changeComponent(ctx, o, s, effect); err != nil || s.Component == kubenames.KubeProxy {
		return err
	}

	// A node tells its kubelet's version only, which is that of the one before, too, when
	// another image of it is wanted.
	if s.Component == kubenames.Kubelet {
		if err := r.Fleet.Machine(o.on).AwaitKubelet(ctx, s.Image); err != nil {
			return err
		}
	}

	return r.Kubernetes.AwaitComponent(ctx, s.OnNode, s.Component, s.Image)
}

// awaitOthers waits until the API servers of all other control planes answer. Their pods do
// not tell: they are Ready as soon as their processes run, so a run that goes on where
// another one was killed may find one that only begins to start.
func (r *Runner) awaitOthers(ctx context.Context, have cluster.Snapshot, node string) error {
	for _, other := range have.Kubernetes.Nodes {
		image := other.StaticPods[string(kubenames.KubeAPIServer)].Image
		if other.Name == node || image == "" {
			continue
		}

		if err := r.Kubernetes.AwaitComponent(ctx, other.Name, kubenames.KubeAPIServer, image); err != nil {
			return err
		}
	}

	return nil
}

func (r *Runner) changeComponent(
	ctx context.Context, o stepRun, s step.UpgradeComponent, effect func(context.Context) error,
) error {
	if s.Node == "" {
		return effect(ctx)
	}

	return r.disrupt(ctx, o, s.Evacuation, effect)
}

// setImage changes one image in the configuration that the machine has, and nothing else.
func (r *Runner) setImage(ctx context.Context, m cluster.Machine, c kubenames.Component, image string) error {
	machine := r.Fleet.Machine(m)

	config, err := machine.Configuration(ctx)
	if err != nil {
		return err
	}

	changed, err := r.withImages(config, kubenames.Images{c: image})
	if err != nil || bytes.Equal(config, changed) {
		return err
	}

	return machine.ApplyConfig(ctx, changed, step.Member, m.UUID)
}

// syncManifests brings the manifests that a control plane renders now to the cluster, again when it rendered others
// meanwhile: Talos follows a change of its configuration a moment later.
func (r *Runner) syncManifests(ctx context.Context, o stepRun, s step.SyncManifests) error {
	var configuration []byte
	if s.Changes != "" {
		configuration = r.Configs[o.on.Name]
	}

	read := func() ([]map[string]any, error) {
		return r.Fleet.Machine(o.on).Manifests(ctx, o.images[kubenames.KubeProxy], configuration)
	}

	manifests, err := read()

	for err == nil {
		if err = r.Kubernetes.SyncManifests(ctx, manifests, s.TalosVersion, s.Keep); err != nil {
			break
		}

		synced := manifests
		if manifests, err = read(); err == nil && reflect.DeepEqual(manifests, synced) {
			break
		}
	}

	return err
}
