package machineconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/removals"
)

// component is what a configuration says of a component of Kubernetes.
type component struct {
	name      kubenames.Component
	image     string
	arguments map[string][]string
}

// componentsOf are those that a machine of a role runs.
func componentsOf(p config.Provider, role Role) []component {
	var all []component

	if kubelet := p.K8sKubeletConfig(); kubelet != nil {
		all = append(all, component{kubenames.Kubelet, kubelet.Image(), kubelet.ExtraArgs()})
	}

	if role != ControlPlane {
		return all
	}

	if server := p.K8sAPIServerConfig(); server != nil {
		all = append(all, component{kubenames.KubeAPIServer, server.Image(), server.ExtraArgs()})
	}

	if manager := p.K8sControllerManagerConfig(); manager != nil && manager.Enabled() {
		all = append(all, component{kubenames.KubeControllerManager, manager.Image(), manager.ExtraArgs()})
	}

	if scheduler := p.K8sSchedulerConfig(); scheduler != nil && scheduler.Enabled() {
		all = append(all, component{kubenames.KubeScheduler, scheduler.Image(), scheduler.ExtraArgs()})
	}

	return all
}

// version is that of the image, or else that of the cluster.
func (c component) version(cluster string) (KubernetesVersion, error) {
	named, _ := kubenames.ImageVersion(c.image)

	return ParseKubernetesVersion(cmp.Or(named, cluster))
}

// notStarting are arguments of the components of a machine that their versions of Kubernetes do not have.
func (g *Generator) notStarting(d *documents, m Machine) (found []removals.Setting, in KubernetesVersion, err error) {
	for _, c := range componentsOf(d.known, m.Role) {
		version, err := c.version(g.cluster.KubernetesVersion)
		if err != nil {
			return nil, version, err
		}

		found, err := removals.Of(c.name, removals.Arguments(c.arguments), version.Minor)
		if err != nil || len(found) > 0 {
			return found, version, err
		}
	}

	return nil, in, nil
}

// removed reports an argument with which a component would not start, because its version of Kubernetes removed it, at
// its source: the setting of the kubelet, or else a patch.
func (g *Generator) removed(d *documents, m Machine) error {
	found, version, err := g.notStarting(d, m)
	if err != nil || len(found) == 0 {
		return err
	}

	first := found[0]
	field := g.origin(m, func(d *documents) bool {
		still, _, err := g.notStarting(d, m)

		return err == nil && !slices.Contains(still, first)
	})

	if field == "" && first.Component == kubenames.Kubelet {
		for _, l := range g.levels(m) {
			if slices.Contains(l.values.Keys(setting.KubeletExtraArgs), strings.TrimPrefix(first.Name, "--")) {
				field = l.prefix + setting.KubeletExtraArgs.Name
			}
		}
	}

	return &FieldError{
		Field: field, Found: fmt.Sprintf("the %s for Kubernetes %s", first, version),
		Allowed: "it with Kubernetes " + first.Versions(),
		Fix:     fmt.Sprintf("remove it: this %s does not start with it", first.Component), Err: ErrInvalidConfig,
	}
}

// TooNewFor are the settings in the configuration of a control plane that kube-apiserver has only in newer versions
// than the given one. A change of the configuration takes effect before the images of an upgrade do. There are none in
// a configuration that cannot be read.
func TooNewFor(config []byte, running KubernetesVersion) []removals.Setting {
	p, err := configloader.NewFromBytes(config)
	if err != nil || p.K8sAPIServerConfig() == nil {
		return nil
	}

	found, _ := removals.Of(kubenames.KubeAPIServer, removals.Arguments(p.K8sAPIServerConfig().ExtraArgs()), running.Minor)

	return slices.DeleteFunc(slices.Clone(found), func(s removals.Setting) bool { return !s.AddedAfter(running.Minor) })
}
