package machineconfig

import (
	"net/netip"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Facts are the facts in a finished configuration, after all patches: the main document and separate documents
// count alike. Decisions use them, because an attribute is only one way to write configuration. They contain no
// secrets.
type Facts struct {
	// NodeName is the name that the Kubernetes node of the machine gets; empty when Talos or the platform makes it.
	NodeName string
	// CNI is the pod network that Talos installs: CNIFlannel, CNICustom or CNINone. It is empty on a worker whose
	// configuration leaves it to the control planes.
	CNI string
	// Installer is the image that installs Talos; empty where the configuration names none.
	Installer string
	// Disk is the disk that Talos is installed on.
	Disk InstallDisk
	// PodCIDRs and ServiceCIDRs are the networks of the cluster. A worker of contract v1.14 may have none.
	PodCIDRs, ServiceCIDRs []netip.Prefix
	// DNSDomain is the domain of cluster services; empty where the configuration names none.
	DNSDomain string
	// EndpointHost is the host of the Kubernetes API; empty where the configuration names none.
	EndpointHost string
	// VirtualIPs are the addresses that control planes share.
	VirtualIPs []netip.Addr
	// CertSANs are the names and addresses in the certificates of the Talos API and the Kubernetes API.
	CertSANs []string
	// Labels and Taints are those of the Kubernetes node of the machine; a taint is value:effect or effect.
	Labels, Taints map[string]string
	// UserVolumes are the volumes that the configuration adds, by their IDs in Talos, such as u-data.
	UserVolumes []string
}

// factsOf reads the facts of a configuration.
func factsOf(p coreconfig.Provider) Facts {
	f := Facts{NodeName: nodeName(p), CNI: cniOf(p), VirtualIPs: virtualIPs(p), UserVolumes: userVolumes(p)}
	f.Installer, f.Disk = installationOf(p)

	if network := p.K8sNetworkConfig(); network != nil {
		f.PodCIDRs, f.ServiceCIDRs, f.DNSDomain = network.PodCIDRs(), network.ServiceCIDRs(), network.DNSDomain()
	}

	if section := p.K8sClusterConfig(); section != nil && section.ClusterEndpoint() != nil {
		f.EndpointHost = section.ClusterEndpoint().Hostname()
	}

	if node := p.K8sNodeConfig(); node != nil {
		f.Labels, f.Taints = node.Labels(), node.Taints()
	}

	if m := p.Machine(); m != nil {
		f.CertSANs = append(f.CertSANs, m.Security().CertSANs()...)
	}

	if server := p.K8sAPIServerConfig(); server != nil {
		f.CertSANs = append(f.CertSANs, server.CertSANs()...)
	}

	return f
}

// userVolumes are the IDs of the volumes that a configuration adds (Talos 1.14, volumeconfig/user_volumes.go).
func userVolumes(p coreconfig.Provider) []string {
	var ids []string

	for _, v := range p.UserVolumeConfigs() {
		ids = append(ids, constants.UserVolumePrefix+v.Name())
	}

	for _, v := range p.RawVolumeConfigs() {
		ids = append(ids, constants.RawVolumePrefix+v.Name())
	}

	for _, v := range p.ExistingVolumeConfigs() {
		ids = append(ids, constants.ExistingVolumePrefix+v.Name())
	}

	for _, v := range p.ExternalVolumeConfigs() {
		ids = append(ids, constants.ExternalVolumePrefix+v.Name())
	}

	for _, v := range p.SwapVolumeConfigs() {
		ids = append(ids, constants.SwapVolumePrefix+v.Name())
	}

	return ids
}

// nodeName is the name of the Kubernetes node of a machine with a static host name (Talos 1.13, controllers/k8s,
// nodename.go).
func nodeName(p coreconfig.Provider) string {
	hostname := p.NetworkHostnameConfig()
	node := p.K8sNodeConfig()

	if hostname == nil || node == nil {
		return ""
	}

	return kubenames.NodeName(hostname.Hostname(), node.RegisterWithFQDN())
}

// cniOf is the pod network in either form. In documents, flannel has a separate one, and a custom pod network is
// an external manifest that talosctl and talosop call custom-cni. Without both there is none (machinery 1.14,
// config/generate/kubernetes.go).
func cniOf(p coreconfig.Provider) string {
	if p.K8sFlannelCNIConfig() != nil {
		return CNIFlannel
	}

	main := p.RawV1Alpha1()
	if main != nil && main.ClusterConfig != nil && main.ClusterConfig.ClusterNetwork != nil &&
		main.ClusterConfig.ClusterNetwork.CNI != nil {
		return main.ClusterConfig.CNI().Name()
	}

	if main == nil || main.MachineConfig == nil || main.MachineConfig.Type() == machine.TypeWorker {
		return ""
	}

	for _, manifest := range p.K8sExternalManifestConfigs() {
		if manifest.Name() == customCNI {
			return CNICustom
		}
	}

	return CNINone
}

// installationOf is the installer image and the disk, in either form.
func installationOf(p coreconfig.Provider) (installer string, disk InstallDisk) {
	disk.ephemeral = ephemeralSize(p)

	if own := p.UnattendedInstallConfig(); own != nil {
		if selector := own.VolumeSelector(); !selector.IsZero() {
			disk.match = &selector
		}

		return own.InstallerImage(), disk
	}

	main := p.RawV1Alpha1()
	if main == nil || main.MachineConfig == nil || main.MachineConfig.MachineInstall == nil {
		return "", InstallDisk{}
	}

	install := main.MachineConfig.MachineInstall
	disk.path = install.InstallDisk

	if found, err := install.DiskMatchExpression(); err == nil {
		disk.match = found
	}

	return install.InstallImage, disk
}

// virtualIPs are the virtual IPs of all links, in either form.
func virtualIPs(p coreconfig.Provider) []netip.Addr {
	var addresses []netip.Addr

	for _, document := range p.NetworkVirtualIPConfigs() {
		addresses = append(addresses, document.VIP())
	}

	add := func(text string) {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}

	if p.Machine() == nil {
		return addresses
	}

	for _, device := range p.Machine().Network().Devices() {
		if vip := device.VIPConfig(); vip != nil {
			add(vip.IP())
		}

		for _, vlan := range device.Vlans() {
			if vip := vlan.VIPConfig(); vip != nil {
				add(vip.IP())
			}
		}
	}

	return addresses
}
