package machineconfig

import (
	"fmt"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// base generates the configuration of a machine before any patch: that of `talosctl gen config` with the
// settings put in.
func (g *Generator) base(m Machine) (*documents, error) {
	kind := machine.TypeWorker
	if m.Role == ControlPlane {
		kind = machine.TypeControlPlane
	}

	generated, err := g.input.Config(kind)
	if err != nil {
		return nil, fmt.Errorf("generate %s configuration: %w", m.Role, err)
	}

	known := generated.Documents()

	main, ok := known[0].(*v1alpha1.Config)
	if !ok {
		return nil, fmt.Errorf("generate %s configuration: unexpected first document %T", m.Role, known[0])
	}

	if known, err = g.putPlatform(known, main, m); err != nil {
		return nil, err
	}

	putSANs(known, m.CertSANs)
	putAccepted(known, main, g.bundle, m.Role)
	putEncryption(known, main, g.bundle)

	if known, err = g.putNetwork(known, main); err != nil {
		return nil, err
	}

	registries, err := g.putRegistries(main.MachineConfig)
	if err != nil {
		return nil, err
	}

	known = append(known, registries...)

	if g.cluster.ImageCache {
		known = append(g.putImageCache(known, main), system.ImageCacheVolume())
	}

	if m.Hostname != "" {
		putHostname(known, m.Hostname)
	}

	if known, err = m.System.Put(known, main, g.contract); err != nil {
		return nil, fmt.Errorf("generate %s configuration: %w", m.Role, err)
	}

	provider, err := container.New(g.putSettings(known, main, m)...)
	if err != nil {
		return nil, fmt.Errorf("generate %s configuration: %w", m.Role, err)
	}

	return &documents{known: provider, generated: provider}, nil
}

// putPlatform puts in what depends on where a machine runs: as a pod, or on hardware that Talos is installed on.
func (g *Generator) putPlatform(known []config.Document, main *v1alpha1.Config, m Machine) ([]config.Document, error) {
	if m.Mode != Container {
		return g.putInstall(known, main.MachineConfig, m.Install)
	}

	g.putContainer(known, main)

	if m.PeerAddress.IsValid() && m.Role == ControlPlane {
		g.putPeerAddress(known, main, m.PeerAddress)
	}

	if m.EndpointAddress.IsValid() {
		known = g.putEndpointAddress(known, m.EndpointAddress)
	}

	return known, nil
}

// putInstall writes what to install and where: in the main document, or from contract v1.14 in a separate one.
func (g *Generator) putInstall(
	known []config.Document, main *v1alpha1.MachineConfig, install Install,
) ([]config.Document, error) {
	if g.contract.UnattendedInstallConfig() {
		return putUnattendedInstall(known, install)
	}

	return known, install.put(main.MachineInstall, g.contract)
}

// put writes an installation into its field of the main document.
func (i Install) put(target *v1alpha1.InstallConfig, contract *coreconfig.VersionContract) error {
	target.InstallDisk = i.Disk
	target.InstallImage = i.Image
	target.InstallWipe = new(i.Wipe)
	target.InstallExtraKernelArgs = i.ExtraKernelArgs

	// Talos refuses extra arguments beside the command line of the UKI (Talos 1.12, install validation).
	if contract.GrubUseUKICmdlineDefault() {
		target.InstallGrubUseUKICmdline = new(len(i.ExtraKernelArgs) == 0)
	}

	if i.DiskSelector == nil {
		return nil
	}

	selector, err := i.DiskSelector.config()
	if err != nil {
		return err
	}

	target.InstallDiskSelector = selector

	return nil
}

// config goes through YAML because the size matcher of the machinery library can only be made by decoding.
func (s *DiskSelector) config() (*v1alpha1.InstallDiskSelector, error) {
	selector := &v1alpha1.InstallDiskSelector{
		Model: s.Model, Serial: s.Serial, Modalias: s.Modalias, UUID: s.UUID, WWID: s.WWID,
		Type: v1alpha1.InstallDiskType(s.Type), BusPath: s.BusPath,
	}

	if s.Size == "" {
		return selector, nil
	}

	encoded, err := yaml.Marshal(s.Size)
	if err != nil {
		return nil, fmt.Errorf("encode disk size %q: %w", s.Size, err)
	}

	size := &v1alpha1.InstallDiskSizeMatcher{}
	if err := yaml.Unmarshal(encoded, size); err != nil {
		return nil, &FieldError{
			Field: "machine.install.disk_selector.size", Found: quoted(s.Size),
			Allowed: `a comparison with a size, such as ">= 100GB" or "== 1TB"`, Fix: "the operators are ==, >=, <=, > and <",
		}
	}

	selector.Size = size

	return selector, nil
}

// putHostname sets a static host name in the form of the contract: the generated HostnameConfig (from
// v1.12) or the field of the main document.
func putHostname(known []config.Document, hostname string) {
	*places.Make[string](known, places.Hostname) = hostname

	if found, ok := places.Document[*network.HostnameConfigV1Alpha1](known); ok {
		found.ConfigAuto = new(nethelpers.AutoHostnameKindOff)
	}
}

func (c CNI) config() *v1alpha1.CNIConfig {
	if c.Name == "" {
		return nil
	}

	config := &v1alpha1.CNIConfig{CNIName: c.Name, CNIUrls: c.URLs}

	if c.Flannel != nil {
		config.CNIFlannel = &v1alpha1.FlannelCNIConfig{FlanneldExtraArgs: c.Flannel.ExtraArgs}

		if c.Flannel.KubeNetworkPolicies {
			config.CNIFlannel.FlannelKubeNetworkPoliciesEnabled = new(true)
		}
	}

	return config
}

// kubeProxy reports whether Talos deploys kube-proxy.
func (c Cluster) kubeProxy() bool { return c.KubeProxy == nil || *c.KubeProxy }

// discovery reports whether the discovery service is used: as requested, and otherwise wherever it is reachable.
// An isolated cluster has none.
func (c Cluster) discovery() bool {
	if c.Isolated {
		return false
	}

	if c.Discovery != nil {
		return *c.Discovery
	}

	return !c.AirGapped
}
