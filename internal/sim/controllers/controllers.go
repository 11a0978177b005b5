// Package controllers lets the resources about Kubernetes follow a simulated machine's configuration: the kubelet,
// the control plane, static pods and bootstrap manifests. It creates the manifests in the cluster, too.
package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	kubeletpkg "github.com/talosop/terraform-provider-talosop/internal/sim/kubelet"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Host is the controllers' interface to the machine's cluster.
type Host interface {
	// Kubernetes waits for an API server that machined reaches.
	Kubernetes(ctx context.Context) (*kube.Client, error)
	// Applying is held by the machine that creates bootstrap manifests.
	Applying() sync.Locker
}

// Controllers are those of one boot.
type Controllers struct {
	*machined.Boot

	host      Host
	kubelet   *kubeletpkg.Kubelet
	rendering sync.Mutex      // serializes what follows from the configuration
	manifests timing.Notifier // the bootstrap manifests were rendered
}

// New makes the controllers of a boot, which do not run yet.
func New(b *machined.Boot, host Host, kubelet *kubeletpkg.Kubelet) *Controllers {
	return &Controllers{Boot: b, host: host, kubelet: kubelet}
}

// Follow lets the resources about Kubernetes follow the configuration, as
// machined's controllers do: a moment after it.
func (c *Controllers) Follow(ctx context.Context) {
	for {
		changed := c.Changed.Next()
		c.Render()

		select {
		case <-ctx.Done():
			return
		case <-changed:
		}

		if timing.Pause(ctx, c.Delays.Render) != nil {
			return
		}
	}
}

// Render writes the resources about Kubernetes that follow from the configuration.
func (c *Controllers) Render() {
	c.rendering.Lock()
	defer c.rendering.Unlock()

	cfg := c.Config()

	c.publishKubelet()

	if !c.ControlPlane() {
		return
	}

	c.publishControlPlane(cfg)

	if err := c.publishManifests(cfg); err != nil {
		c.World.Logf("%s: render manifests: %v", c.Name(), err)
	}

	c.World.Lock()
	started := c.kubelet.RunsStaticPods()
	c.World.Unlock()

	if !started {
		return // machined serves them once etcd was healthy
	}

	if err := c.publishStaticPods(); err != nil {
		c.World.Logf("%s: render static pods: %v", c.Name(), err)
	}
}

// kubeletSecrets names the state of what the kubelet is given to find its cluster (Talos 1.13, secrets/kubelet.go).
func kubeletSecrets(cfg talosconfig.Config) string {
	sum := sha256.New()

	for _, ca := range cfg.K8sAPIServerCAConfig().AcceptedCAs() {
		sum.Write(ca.Crt)
	}

	sum.Write([]byte(cfg.Cluster().Token().ID() + cfg.Cluster().Token().Secret()))

	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// publishKubelet writes what the kubelet runs with (Talos 1.13, k8s/kubelet_spec.go); a
// change restarts it.
func (c *Controllers) publishKubelet() {
	kubelet := c.Config().K8sKubeletConfig()

	args := []string{"--hostname-override=" + c.Nodename(), "--node-ip=" + c.Address().String()}
	args = append(args, flags(kubelet.ExtraArgs())...)

	config := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	for field, value := range kubelet.ExtraConfig() {
		config[field] = value
	}

	spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	machined.Modify(c.Boot, spec, func(r *k8s.KubeletSpec) {
		s := r.TypedSpec()
		s.Image, s.Args, s.Config, s.ExpectedNodename = kubelet.Image(), args, config, c.Nodename()
	})

	version, err := machined.Read(c.Boot, spec, func(*k8s.KubeletSpec) {})
	if err != nil {
		c.World.Logf("%s: %v", c.Name(), err)

		return
	}

	c.kubelet.Want(kubelet.Image(), args, version+kubeletSecrets(c.Config()))
	c.Spawn(c.kubelet.Apply)
}
