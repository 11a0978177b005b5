package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/go-multierror"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// validationMode is how a configuration is validated on a machine: an installed one
// needs no install section any more.
type validationMode struct {
	platform  machined.Platform
	installed bool
}

func (v validationMode) String() string        { return v.platform.String() }
func (v validationMode) RequiresInstall() bool { return v.platform == machined.Metal && !v.installed }
func (v validationMode) InContainer() bool     { return v.platform == machined.Container }

func (b *boot) validationMode() validationMode {
	return validationMode{platform: b.m.Platform, installed: b.m.Installed()}
}

// kindsOf114 are the kinds of documents that Talos 1.14 brought: the difference between the registries of machinery
// 1.14.1 and 1.13.6 (config/types).
var kindsOf114 = []string{
	"BGPInstanceConfig", "CRIBaseRuntimeSpecConfig", "CRICustomizationConfig", "ContainerConfig",
	"DiscoveryIdentityConfig", "DiscoveryServiceConfig", "EtcFileConfig", "FilesystemScrubConfig",
	"FilesystemTrimConfig", "HTTPProbeConfig", "ImageCacheConfig", "KernelModuleConfig", "KubeAPIServerCAConfig",
	"KubeAPIServerConfig", "KubeAdmissionControlConfig", "KubeAggregatorCAConfig", "KubeAuditPolicyConfig",
	"KubeAuthenticationConfig", "KubeAuthorizerConfig", "KubeClusterConfig", "KubeControllerManagerConfig",
	"KubeCoreDNSConfig", "KubeCredentialProviderConfig", "KubeEtcdEncryptionConfig", "KubeExternalManifestConfig",
	"KubeFlannelCNIConfig", "KubeInlineManifestConfig", "KubeNetworkConfig", "KubeNodeConfig", "KubePrismConfig",
	"KubeProxyConfig", "KubeSchedulerConfig", "KubeServiceAccountConfig", "KubeStaticPodConfig",
	"KubeTalosAPIAccessConfig", "KubeletConfig", "LVMLogicalVolumeConfig", "LVMVolumeGroupConfig", "RAIDArrayConfig",
	"SecurityProfileConfig", "SysctlConfig", "SysfsConfig", "UdevRulesConfig", "UnattendedInstallConfig", "VethConfig",
}

// parseConfig reads a configuration. A machine knows the kinds of its own release (Talos 1.13, config/configloader,
// decoder.go, and config/internal/registry).
func (b *boot) parseConfig(data []byte) (config.Provider, error) {
	cfg, err := configloader.NewFromBytes(data)
	if err != nil || b.Since(1, 14) {
		return cfg, err
	}

	for _, document := range cfg.Documents() {
		if kind := document.Kind(); slices.Contains(kindsOf114, kind) {
			return nil, fmt.Errorf("error decoding document %[1]s/%[2]s/: %[2]q %[1]q: not registered",
				document.APIVersion(), kind)
		}
	}

	return cfg, nil
}

// validate judges a configuration by itself. The machinery is that of Talos 1.14, which no longer asks for an install
// section; older machines do (Talos 1.13, types/v1alpha1, Config.Validate).
func (b *boot) validate(cfg config.Provider) ([]string, error) {
	mode := b.validationMode()

	// The images of Kubernetes are for the version of the machine, and judged below.
	warnings, err := cfg.ValidateAsClient(mode, validation.WithLocal())

	if main := cfg.RawV1Alpha1(); !b.Since(1, 14) && main != nil && main.MachineConfig != nil &&
		main.MachineConfig.MachineInstall == nil && mode.RequiresInstall() {
		err = multierror.Append(err, fmt.Errorf("install instructions are required in %q mode", mode))
	}

	return warnings, err
}

// validateAtRuntime judges a configuration by what the machine has, and the images of Kubernetes by the Talos that it
// runs (Talos 1.13, types/v1alpha1, Config.RuntimeValidate; Talos 1.14, ValidateKubernetesVersions).
func (b *boot) validateAtRuntime(ctx context.Context, cfg config.Provider) ([]string, error) {
	warnings, err := cfg.RuntimeValidate(ctx, b.Resources, b.validationMode())

	if cfg.RawV1Alpha1() != nil && cfg.RawV1Alpha1().MachineConfig != nil {
		for _, image := range kubernetesImages(cfg) {
			if problem := b.supportsImage(image.ref); problem != nil {
				err = multierror.Append(err, fmt.Errorf("%s image is not valid: %w", image.name, problem))
			}
		}
	}

	return warnings, err
}

type kubernetesImage struct{ name, ref string }

// kubernetesImages are those of a machine's role, in the order in which Talos judges them.
func kubernetesImages(cfg config.Provider) []kubernetesImage {
	var images []kubernetesImage

	if kubelet := cfg.K8sKubeletConfig(); kubelet != nil {
		images = append(images, kubernetesImage{"kubelet", kubelet.Image()})
	}

	if !cfg.Machine().Type().IsControlPlane() {
		return images
	}

	if api := cfg.K8sAPIServerConfig(); api != nil {
		images = append(images, kubernetesImage{"kube-apiserver", api.Image()})
	}

	if manager := cfg.K8sControllerManagerConfig(); manager != nil {
		images = append(images, kubernetesImage{"kube-controller-manager", manager.Image()})
	}

	if scheduler := cfg.K8sSchedulerConfig(); scheduler != nil {
		images = append(images, kubernetesImage{"kube-scheduler", scheduler.Image()})
	}

	return images
}

func (b *boot) supportsImage(ref string) error {
	own, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: b.TalosVersion()})
	if err != nil {
		return fmt.Errorf("failed to parse Talos version: %w", err)
	}

	kubernetes, err := compatibility.KubernetesVersionFromImageRef(ref)
	if err != nil {
		return fmt.Errorf("failed to parse Kubernetes version from image reference %q: %w", ref, err)
	}

	return kubernetes.SupportedWith(own)
}
