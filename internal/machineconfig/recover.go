package machineconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// ErrNotRecoverable means that settings cannot be read back from a configuration.
var ErrNotRecoverable = errors.New("cannot read settings from the configuration")

// SettingsOf reads settings back from the configuration of a machine, the reverse of Generate. Talos's own
// defaults stay at their zero values. Patches cannot be distinguished from settings: where patches or registries
// were used, the settings make another configuration, and the caller has to report what is missing.
//
// The contract is the newest one with which the settings make exactly this configuration, the images of Kubernetes
// aside, or else the newest one of its form. The version of Kubernetes is that of the kubelet, which an upgrade
// reaches last; Images returns the other images of the machine. Errors do not quote the configuration.
//
// Of the settings that several levels may have, it reads those in levels, as the machine's own, without map
// entries whose names suggest a secret.
func SettingsOf(cfg []byte, bundle *pki.Bundle, levels ...*setting.Setting) (Cluster, Machine, error) {
	provider, err := knownIn(cfg)
	if err != nil {
		return Cluster{}, Machine{}, fmt.Errorf("read settings: %w", err)
	}

	known, main := provider.Documents(), provider.RawV1Alpha1()
	inDocuments := provider.Has(places.ClusterName.Document.Kind)

	if main == nil || main.MachineConfig == nil || main.ClusterConfig == nil || provider.K8sClusterConfig() == nil {
		return Cluster{}, Machine{}, fmt.Errorf(
			"%w: no readable machine and cluster sections with an endpoint", ErrNotRecoverable)
	}

	c := recoverCluster(provider, inDocuments)
	m := recoverMachine(provider)
	m.System = system.Read(known, main, inDocuments)

	read := func(contract *coreconfig.VersionContract) setting.Values {
		return setting.Read(setting.Config{Main: main, Documents: known, Contract: contract}, levels).WithoutKeys(namesSecret)
	}

	contract := recoverContract(c, m, cfg, read, inDocuments, bundle)
	c.Contract, m.Settings = contract.String(), read(contract)

	return c, m, nil
}

// recoverCluster reads what the library finds in either form, and the switches whose forms are not alike: Talos has no
// default for them in documents, which are there or not.
func recoverCluster(p coreconfig.Provider, inDocuments bool) Cluster {
	main, section := p.RawV1Alpha1(), p.K8sClusterConfig()
	c := Cluster{Name: section.ClusterName(), KubernetesVersion: kubeletVersion(p)}

	if endpoint := section.ClusterEndpoint(); endpoint != nil {
		c.Endpoint = endpoint.String()
	}

	if sans := main.MachineConfig.MachineCertSANs; len(sans) > 0 {
		c.CertSANs = sans
	}

	// A worker of contract v1.14 does not have the documents of the pod network and of kube-proxy.
	if net := p.K8sNetworkConfig(); net != nil {
		c.PodCIDRs = otherThan(net.PodCIDRs(), constants.DefaultIPv4PodCIDR)
		c.ServiceCIDRs = otherThan(net.ServiceCIDRs(), constants.DefaultIPv4ServiceCIDR)

		if domain := net.DNSDomain(); domain != constants.DefaultDNSDomain {
			c.DNSDomain = domain
		}
	}

	if proxy := p.K8sProxyConfig(); proxy != nil && !proxy.Enabled() {
		c.KubeProxy = new(false)
	}

	if cache := p.ImageCacheConfig(); cache != nil {
		c.ImageCache = cache.LocalEnabled()
	}

	if inDocuments {
		recoverSwitches(&c, p)

		return c
	}

	c.AllowSchedulingOnControlPlanes = isTrue(main.ClusterConfig.AllowSchedulingOnControlPlanes)

	if net := main.ClusterConfig.ClusterNetwork; net != nil {
		c.CNI = recoverCNI(net.CNI)
	}

	if discovery := main.ClusterConfig.ClusterDiscoveryConfig; discovery != nil && discovery.DiscoveryEnabled != nil &&
		!*discovery.DiscoveryEnabled {
		c.Discovery = new(false)
	}

	return c
}

// otherThan is a list of networks, nothing when it has the usual one alone.
func otherThan(networks []netip.Prefix, usual string) []string {
	var texts []string
	for _, network := range networks {
		texts = append(texts, network.String())
	}

	if slices.Equal(texts, []string{usual}) {
		return nil
	}

	return texts
}

func recoverCNI(cni *v1alpha1.CNIConfig) CNI {
	if cni == nil {
		return CNI{}
	}

	out := CNI{Name: cni.CNIName, URLs: cni.CNIUrls}
	if cni.CNIFlannel != nil {
		out.Flannel = &Flannel{ExtraArgs: cni.CNIFlannel.FlanneldExtraArgs,
			KubeNetworkPolicies: isTrue(cni.CNIFlannel.FlannelKubeNetworkPoliciesEnabled)}
	}

	return out
}

func recoverMachine(p coreconfig.Provider) Machine {
	m := Machine{Role: Worker, Mode: Metal, Hostname: p.NetworkHostnameConfig().Hostname()}
	if p.Machine().Type().IsControlPlane() {
		m.Role = ControlPlane
	}

	if own, ok := places.Document[*runtime.UnattendedInstallConfigV1Alpha1](p.Documents()); ok {
		m.Install = installOf(own)
	}

	install := p.RawV1Alpha1().MachineConfig.MachineInstall
	if install == nil {
		return m
	}

	m.Install = Install{
		Disk: install.InstallDisk, Wipe: isTrue(install.InstallWipe), Image: install.InstallImage,
		ExtraKernelArgs: install.InstallExtraKernelArgs,
	}

	if s := install.InstallDiskSelector; s != nil {
		m.Install.DiskSelector = &DiskSelector{
			Type: string(s.Type), Model: s.Model, Serial: s.Serial, Modalias: s.Modalias, UUID: s.UUID, WWID: s.WWID,
			BusPath: s.BusPath,
		}

		if s.Size != nil {
			// The matcher keeps the original text, and shows it only here.
			if written, err := s.Size.MarshalYAML(); err == nil {
				m.Install.DiskSelector.Size, _ = written.(string)
			}
		}
	}

	return m
}

// kubeletVersion is the tag of the kubelet's image, from which Talos derives the version of Kubernetes, without
// the variant of the image (Talos 1.13, pkg/cluster/kubernetes, extractKubeletVersionSuffix) and without a digest.
func kubeletVersion(p coreconfig.Provider) string {
	image := places.Value[string](p.Documents(), places.KubeletImage)
	if image == nil {
		return ""
	}

	tag, _ := kubenames.Tag(*image)

	return strings.TrimSuffix(strings.TrimSuffix(tag, "-slim"), "-fat")
}

// recoverContract is the contract whose generated configuration comes closest, the newest of several: patches make some
// difference to each. Where the cluster has a document it is one of those that make it, and no other: patches do not
// move what a machine belongs to.
func recoverContract(
	c Cluster, m Machine, cfg []byte, read func(*coreconfig.VersionContract) setting.Values, inDocuments bool,
	bundle *pki.Bundle,
) *coreconfig.VersionContract {
	newest, oldest := lastFieldsMinor, int(minTalosMinor)
	if inDocuments {
		newest, oldest = maxContractMinor, lastFieldsMinor+1
	}

	closest, fewest, found := &coreconfig.VersionContract{Major: 1, Minor: max(oldest, lastFieldsMinor)}, 0, false

	for minor := newest; minor >= oldest && (!found || fewest > 0); minor-- {
		contract := &coreconfig.VersionContract{Major: 1, Minor: minor}
		c.Contract, m.Settings = contract.String(), read(contract)

		made, err := Generate(c, m, bundle)
		if err != nil {
			continue
		}

		changes, err := Diff(made.Bytes, cfg)
		if err == nil && (!found || len(changes) < fewest) {
			closest, fewest, found = contract, len(changes), true
		}
	}

	return closest
}

func isTrue(b *bool) bool { return b != nil && *b }
