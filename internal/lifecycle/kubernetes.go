package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// configOf is the configuration for a machine. A member keeps its Kubernetes images, which change only in the order
// of an upgrade. Where it names none, and for a machine that joins, they are those of the cluster's version.
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

// withKeys sets the keys of a step in a configuration that has the final keys.
func (r *Runner) withKeys(ctx context.Context, o stepRun, config []byte, s step.ApplyConfig) ([]byte, error) {
	if s.Keys == (rotation.Keys{}) || s.Keys == o.on.Keys {
		return config, nil
	}

	if r.Keys == nil {
		return nil, wait.Permanent(errors.New("cannot set keys in a configuration"))
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

// freshTokens restarts the kubelet of a machine whose pods need tokens of another service account key. It runs before
// the configuration that records it, so an interrupted run repeats it.
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
		return nil, wait.Permanent(errors.New("cannot set Kubernetes images in a configuration"))
	}

	out, err := r.Images(config, images)
	if err != nil {
		return nil, wait.Permanent(fmt.Errorf("set the Kubernetes images in the configuration: %w", err))
	}

	return out, nil
}

// pullImages pulls the images that a machine itself runs, one after the other.
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

// upgradeComponent sets the images of components and waits until they run. The wait does not depend on which run set
// the images, so after an interruption the same step continues to wait.
func (r *Runner) upgradeComponent(ctx context.Context, o stepRun, s step.UpgradeComponent) error {
	images, changes := kubenames.Images{}, false

	for _, part := range s.Each() {
		images[part.Component] = part.Image
		changes = changes || part.From != part.Image
	}

	// Another scheduler or kubelet restarts the API server of its machine, too (cluster/plan_kubernetes.go).
	if s.Role == step.ControlPlane && changes {
		if err := r.awaitOthers(ctx, o.have, s.OnNode); err != nil {
			return err
		}
	}

	effect := func(ctx context.Context) error { return r.setImages(ctx, o.on, images) }
	if err := r.changeComponent(ctx, o, s, effect); err != nil {
		return err
	}

	return r.awaitComponents(ctx, o, s)
}

// awaitComponents waits until the components of a step run with their images. The kubelet is first, because the others
// run in it.
func (r *Runner) awaitComponents(ctx context.Context, o stepRun, s step.UpgradeComponent) error {
	each := s.Each()
	slices.Reverse(each)

	for _, part := range each {
		if part.Component == kubenames.KubeProxy {
			continue
		}

		// A node reports only its kubelet version, which does not change with another image of the same version.
		if part.Component == kubenames.Kubelet {
			if err := r.Fleet.Machine(o.on).AwaitKubelet(ctx, part.Image); err != nil {
				return err
			}
		}

		if err := r.Kubernetes.AwaitComponent(ctx, s.OnNode, part.Component, part.Image); err != nil {
			return err
		}
	}

	return nil
}

// awaitOthers waits until the API servers of all other control planes answer. Their pods are Ready as soon as the
// processes run, so after a killed run one may still be starting.
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

// setImages changes images in the machine's configuration, and nothing else.
func (r *Runner) setImages(ctx context.Context, m cluster.Machine, images kubenames.Images) error {
	machine := r.Fleet.Machine(m)

	config, err := machine.Configuration(ctx)
	if err != nil {
		return err
	}

	changed, err := r.withImages(config, images)
	if err != nil || bytes.Equal(config, changed) {
		return err
	}

	return machine.ApplyConfig(ctx, changed, step.Member, m.UUID)
}

// syncManifests applies the manifests that a control plane renders now, and repeats that if it rendered others
// meanwhile. Talos renders them shortly after its configuration changes.
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
