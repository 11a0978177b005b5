package machineconfig

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// From contract v1.14 almost everything about Kubernetes and the installation has separate documents, and a field
// of the main document beside its document is an error (machinery 1.14, config/generate). The generator of the
// library makes most of them. This file makes those that it has no options for, or makes differently.

// putEncryption writes every key for Secrets of Kubernetes. The library writes only a key of secretbox in the main
// document, and in the separate document it writes a key of aescbc as one of secretbox (machinery 1.14,
// config/generate/init.go and kubernetes.go). Talos gives the document to the API server unchanged.
func putEncryption(known []config.Document, main *v1alpha1.Config, b *pki.Bundle) {
	if !main.Machine().Type().IsControlPlane() {
		return
	}

	own, inDocuments := places.Document[*k8s.KubeEtcdEncryptionConfigV1Alpha1](known)
	if !inDocuments {
		main.ClusterConfig.ClusterAESCBCEncryptionSecret = b.Secrets().Secrets.AESCBCEncryptionSecret

		return
	}

	var providers []any

	for _, key := range b.EncryptionKeys() {
		keys := []any{map[string]any{"name": key.Name, "secret": key.Secret}}
		providers = append(providers, map[string]any{key.Provider: map[string]any{"keys": keys}})
	}

	own.Config.Object = map[string]any{
		"resources": []any{map[string]any{"resources": []any{"secrets"}, "providers": providers}},
	}
}

// putUnattendedInstall makes the document of an installation. Without a disk there is none, and a patch may add
// it.
func putUnattendedInstall(known []config.Document, install Install) ([]config.Document, error) {
	match, err := install.expression()
	if err != nil || match.IsZero() {
		return known, err
	}

	document := runtime.NewUnattendedInstallConfigV1Alpha1()
	document.Installer.Image = install.Image
	document.ProvisioningSpec.Wipe = new(install.Wipe)
	document.ProvisioningSpec.DiskSelector.Match = match

	return append(known, document), nil
}

// linksOfDisks are the links of udev that name disks by their properties.
const linksOfDisks = "/dev/disk/"

// expression is the disk selector of Talos 1.14; zero when there is no disk.
func (i Install) expression() (cel.Expression, error) {
	switch {
	case i.DiskSelector != nil:
		selector, err := i.DiskSelector.config()
		if err != nil {
			return cel.Expression{}, err
		}

		found, err := (&v1alpha1.InstallConfig{InstallDiskSelector: selector}).DiskMatchExpression()
		if err != nil {
			return cel.Expression{}, fmt.Errorf("find a disk by its properties: %w", err)
		}

		return *found, nil
	case i.Disk == "":
		return cel.Expression{}, nil
	case strings.HasPrefix(i.Disk, linksOfDisks):
		return diskExpression(fmt.Sprintf("%q in disk.symlinks", i.Disk))
	default:
		return diskExpression(fmt.Sprintf("disk.dev_path == %q", i.Disk))
	}
}

func diskExpression(text string) (cel.Expression, error) {
	found, err := cel.ParseBooleanExpression(text, celenv.DiskLocator())
	if err != nil {
		return cel.Expression{}, fmt.Errorf("find a disk by its name: %w", err)
	}

	return found, nil
}

// settleInstall gives the disk of the settings back to an installation that patches changed: the library loses an
// expression when it merges a document that has none (machinery 1.14, config/merge). And it lets the installation end
// in a reboot where nothing else is said: by itself Talos reboots only for an image (Talos 1.14,
// runtime/unattended_install.go, shouldReboot).
func settleInstall(documents []config.Document, install Install) ([]config.Document, error) {
	for i, document := range documents {
		found, ok := document.(*runtime.UnattendedInstallConfigV1Alpha1)
		if !ok {
			continue
		}

		// A copy, because the document may be that of a patch, which is used again.
		settled := found.DeepCopy()

		if settled.ProvisioningSpec.DiskSelector.IsZero() {
			disk, err := install.expression()
			if err != nil {
				return nil, err
			}

			settled.ProvisioningSpec.DiskSelector.Match = disk
		}

		if settled.Reboot == nil && settled.Installer.Image == "" {
			settled.Reboot = new(true)
		}

		documents[i] = settled
	}

	return documents, nil
}

// customCNI is talosctl's name for the manifest of another pod network.
const customCNI = "custom-cni"

// putNetwork sets the pod network and kube-proxy.
func (g *Generator) putNetwork(known []config.Document, main *v1alpha1.Config) ([]config.Document, error) {
	if !g.contract.MultidocKubernetesConfigSupported() {
		if cni := g.cluster.CNI.config(); cni != nil {
			main.ClusterConfig.ClusterNetwork.CNI = cni
		}

		if !g.cluster.kubeProxy() && main.ClusterConfig.ProxyConfig != nil {
			main.ClusterConfig.ProxyConfig.Disabled = new(true)
		}

		return known, nil
	}

	if proxy, ok := places.Document[*k8s.KubeProxyConfigV1Alpha1](known); ok && !g.cluster.kubeProxy() {
		proxy.ProxyEnabled = new(false)
	}

	// Workers have no documents of the pod network.
	flannel, ok := places.Document[*k8s.KubeFlannelCNIConfigV1Alpha1](known)
	if !ok {
		return known, nil
	}

	if settings := g.cluster.CNI.Flannel; settings != nil {
		flannel.FlannelExtraArgs = settings.ExtraArgs

		if settings.KubeNetworkPolicies {
			flannel.FlannelKubeNetworkPoliciesEnabled = new(true)
		}
	}

	if name := g.cluster.CNI.Name; name == "" || name == CNIFlannel {
		return known, nil
	}

	known = slices.DeleteFunc(known, func(d config.Document) bool { return d == config.Document(flannel) })

	for i, manifest := range g.cluster.CNI.URLs {
		parsed, err := url.Parse(manifest)
		if err != nil {
			return nil, errors.New("manifest of the pod network: not a URL")
		}

		document := k8s.NewKubeExternalManifestConfigV1Alpha1()
		document.MetaName, document.URLSpec = cniManifest(i), meta.URL{URL: parsed}
		known = append(known, document)
	}

	return known, nil
}

// cniManifest is the name of a manifest of the pod network.
func cniManifest(index int) string {
	if index == 0 {
		return customCNI
	}

	return fmt.Sprintf("%s-%d", customCNI, index+1)
}

// putImageCache switches the image cache on.
func (g *Generator) putImageCache(known []config.Document, main *v1alpha1.Config) []config.Document {
	if !g.contract.MultidocKubernetesConfigSupported() {
		main.MachineConfig.MachineFeatures.ImageCacheSupport = &v1alpha1.ImageCacheConfig{CacheLocalEnabled: new(true)}

		return known
	}

	document := cri.NewImageCacheConfigV1Alpha1()
	document.LocalConfig.ConfigEnabled = new(true)

	return append(known, document)
}
