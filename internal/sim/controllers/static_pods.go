package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/go-kubernetes/kubernetes/compatibility"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// publishControlPlane writes the configurations of what runs in static pods (Talos 1.13,
// k8s/control_plane.go). A resource whose content stays the same keeps its version.
func (c *Controllers) publishControlPlane(cfg talosconfig.Config) {
	network := cfg.K8sNetworkConfig()
	pods, services := texts(network.PodCIDRs()), texts(network.ServiceCIDRs())

	machined.Modify(c.Boot, k8s.NewAdmissionControlConfig(), func(r *k8s.AdmissionControlConfig) {
		r.TypedSpec().Config = nil
		for _, p := range cfg.K8sAdmissionControlPluginConfigs() {
			r.TypedSpec().Config = append(r.TypedSpec().Config,
				k8s.AdmissionPluginSpec{Name: p.Name(), Configuration: p.Configuration()})
		}
	})
	machined.Modify(c.Boot, k8s.NewAuditPolicyConfig(),
		func(r *k8s.AuditPolicyConfig) { r.TypedSpec().Config = cfg.K8sAuditPolicyConfig().Configuration() })
	machined.Modify(c.Boot, k8s.NewAuthorizationConfig(), func(r *k8s.AuthorizationConfig) {
		r.TypedSpec().Image = cfg.K8sAPIServerConfig().Image()
		r.TypedSpec().Config = authorizers(cfg)
	})

	api, manager, scheduler := cfg.K8sAPIServerConfig(), cfg.K8sControllerManagerConfig(), cfg.K8sSchedulerConfig()
	c.publishComponents(components{
		api: k8s.APIServerConfigSpec{
			Image: api.Image(), ControlPlaneEndpoint: cfg.K8sClusterConfig().ClusterEndpoint().String(),
			EtcdServers: []string{"https://127.0.0.1:2379"},
			LocalPort:   api.APIPort(), ServiceCIDRs: services,
			ExtraArgs:    argValues(api.ExtraArgs()),
			ExtraVolumes: extraVolumes(api.ExtraVolumes()), EnvironmentVariables: api.Env(), AdvertisedAddress: "$(POD_IP)",
			Resources: podResources(api.Resources()),
		},
		manager: k8s.ControllerManagerConfigSpec{
			Enabled: manager.Enabled(), Image: manager.Image(),
			PodCIDRs: pods, ServiceCIDRs: services, ExtraArgs: argValues(manager.ExtraArgs()),
			ExtraVolumes: extraVolumes(manager.ExtraVolumes()), EnvironmentVariables: manager.Env(),
			Resources: podResources(manager.Resources()),
		},
		scheduler: k8s.SchedulerConfigSpec{
			Enabled: scheduler.Enabled(), Image: scheduler.Image(),
			ExtraArgs:    argValues(scheduler.ExtraArgs()),
			ExtraVolumes: extraVolumes(scheduler.ExtraVolumes()), EnvironmentVariables: scheduler.Env(),
			Resources: podResources(scheduler.Resources()), Config: scheduler.Config(),
		},
	})
}

// publishStaticPods renders the static pods from the configurations of their components
// (Talos 1.13, k8s/control_plane_static_pod.go). Talos waits for a healthy etcd before.
func (c *Controllers) publishStaticPods() error {
	pods, err := c.rendered()
	if err != nil {
		return err
	}

	files, err := c.configFileVersion(pods[2].version)
	if err != nil {
		return err
	}

	for _, pod := range pods {
		annotations := map[string]string{constants.AnnotationStaticPodConfigVersion: pod.version}
		if pod.id == k8s.APIServerID {
			annotations[constants.AnnotationStaticPodConfigFileVersion] = files
		}

		c.publishStaticPod(pod, annotations)
	}

	return nil
}

// authorizers are Talos's, with Node and RBAC at the front where they are not named.
func authorizers(cfg talosconfig.Config) []k8s.AuthorizationAuthorizersSpec {
	var named []k8s.AuthorizationAuthorizersSpec
	for _, a := range cfg.K8sAuthorizerConfigs() {
		named = append(named, k8s.AuthorizationAuthorizersSpec{Type: a.Type(), Name: a.Name(), Webhook: a.Webhook()})
	}

	if !cfg.K8sAPIServerConfig().InjectDefaultAuthorizers() {
		return named
	}

	for i, usual := range v1alpha1.APIServerDefaultAuthorizationConfigAuthorizers {
		if !slices.ContainsFunc(named, func(a k8s.AuthorizationAuthorizersSpec) bool { return a.Type == usual.Type }) {
			named = slices.Insert(named, i, usual)
		}
	}

	return named
}

func texts[T fmt.Stringer](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.String())
	}

	return out
}

func argValues(args map[string][]string) map[string]k8s.ArgValues {
	values := make(map[string]k8s.ArgValues, len(args))
	for name, v := range args {
		values[name] = k8s.ArgValues{Values: v}
	}

	return values
}

func extraVolumes(mounts []talosconfig.VolumeMount) []k8s.ExtraVolume {
	var volumes []k8s.ExtraVolume
	for _, m := range mounts {
		volumes = append(volumes, k8s.ExtraVolume{Name: m.Name(), HostPath: m.HostPath(), MountPath: m.MountPath(),
			ReadOnly: m.ReadOnly()})
	}

	return volumes
}

func podResources(r talosconfig.Resources) k8s.Resources {
	limits := map[string]string{"cpu": r.CPULimits(), "memory": r.MemoryLimits()}
	maps.DeleteFunc(limits, func(_, limit string) bool { return limit == "" })

	return k8s.Resources{Requests: map[string]string{"cpu": r.CPURequests(), "memory": r.MemoryRequests()}, Limits: limits}
}

// configFileVersion names the state of the files that kube-apiserver reads. The
// scheduler's configuration is among them, so a new image of kube-scheduler replaces the
// kube-apiserver, too (Talos 1.13, k8s/render_config_static_pods.go).
func (c *Controllers) configFileVersion(scheduler string) (string, error) {
	version := ""

	for _, r := range []resource.Resource{k8s.NewAdmissionControlConfig(), k8s.NewAuditPolicyConfig(),
		k8s.NewAuthorizationConfig()} {
		found, err := c.Resources.Get(context.Background(), r.Metadata())
		if err != nil {
			return "", fmt.Errorf("read %s: %w", r.Metadata(), err)
		}

		version += found.Metadata().Version().String()
	}

	return version + scheduler, nil
}

// publishStaticPod writes one static pod, or removes that of a disabled component.
func (c *Controllers) publishStaticPod(of component, annotations map[string]string) {
	if !of.enabled {
		machined.Remove(c.Boot, k8s.NewStaticPod(k8s.NamespaceName, of.id))
		c.kubelet.SetStaticPod(of.id, nil)

		return
	}

	annotations[constants.AnnotationStaticPodSecretsVersion] = secretsVersion(c.Config())
	pod := staticPod(of, annotations)

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		c.World.Logf("%s: encode static pod %s: %v", c.Name(), of.id, err)

		return
	}

	machined.Modify(c.Boot, k8s.NewStaticPod(k8s.NamespaceName, of.id),
		func(r *k8s.StaticPod) { r.TypedSpec().Pod = content })
	c.kubelet.SetStaticPod(of.id, pod)
}

// secretsVersion names the state of the keys that static pods work with: a change makes new pods (Talos 1.13,
// k8s/render_secrets_static_pod.go).
func secretsVersion(cfg talosconfig.Config) string {
	sum := sha256.New()

	for _, ca := range slices.Concat(cfg.K8sAPIServerCAConfig().AcceptedCAs(), cfg.K8sAggregatorCAConfig().AcceptedCAs()) {
		sum.Write(ca.Crt)
	}

	sum.Write(cfg.K8sServiceAccountConfig().IssuingKey().Key)

	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// staticPod is Talos's static pod without volumes and probes, and with no flags but those
// of the configuration: nothing runs in it.
func staticPod(of component, annotations map[string]string) *corev1.Pod {
	id, version := of.id, compatibility.VersionFromImageRef(of.image)

	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: id, Namespace: metav1.NamespaceSystem, Annotations: annotations,
			Labels: map[string]string{
				"tier": "control-plane", "k8s-app": id, "component": id,
				"app.kubernetes.io/name": id, "app.kubernetes.io/version": version.String(),
				"app.kubernetes.io/component": "control-plane", "app.kubernetes.io/managed-by": "Talos",
			},
		},
		Spec: corev1.PodSpec{
			Priority: new(int32(2000000000)), PriorityClassName: "system-cluster-critical", HostNetwork: true,
			Containers: []corev1.Container{
				{Name: id, Image: of.image, Command: of.command}},
		},
	}
}
