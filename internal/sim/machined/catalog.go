package machined

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/registry"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/files"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/kubeaccess"
	"github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/perf"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/security"
	"github.com/siderolabs/talos/pkg/machinery/resources/siderolink"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// namespaces of Talos resources, with their purpose.
var namespaces = map[string]string{
	v1alpha1.NamespaceName:        "Talos v1alpha1 subsystems glue resources.",
	clusterres.NamespaceName:      "Cluster configuration and discovery resources.",
	clusterres.RawNamespaceName:   "Cluster unmerged raw resources.",
	config.NamespaceName:          "Talos node configuration.",
	etcd.NamespaceName:            "etcd resources.",
	files.NamespaceName:           "Files and file-like resources.",
	hardware.NamespaceName:        "Hardware resources.",
	k8s.NamespaceName:             "Kubernetes all node types resources.",
	k8s.ControlPlaneNamespaceName: "Kubernetes control plane resources.",
	kubespan.NamespaceName:        "KubeSpan resources.",
	network.NamespaceName:         "Networking resources.",
	network.ConfigNamespaceName:   "Networking configuration resources.",
	cri.NamespaceName:             "CRI Seccomp resources.",
	secrets.NamespaceName:         "Resources with secret material.",
	security.NamespaceName:        "Security resources.",
	perf.NamespaceName:            "Stats resources.",
}

// definitions are the resource types a machine knows. Most never have an instance
// here; they exist so that reading them is empty or denied, as on a real machine,
// instead of being of an unknown type.
var definitions = []meta.ResourceWithRD{
	&block.Device{}, &block.DiscoveredVolume{}, &block.Disk{}, &block.MountStatus{}, &block.SwapStatus{},
	&block.Symlink{}, &block.SystemDisk{}, &block.UserDiskConfigStatus{}, &block.VolumeConfig{},
	&block.VolumeMountStatus{}, &block.VolumeStatus{}, &block.ZswapStatus{},

	&clusterres.Affiliate{}, &clusterres.Config{}, &clusterres.Identity{}, &clusterres.Info{}, &clusterres.Member{},

	&config.MachineConfig{}, &config.MachineType{},

	&cri.ImageCacheConfig{}, &cri.RegistriesConfig{}, &cri.SeccompProfile{},

	&etcd.Config{}, &etcd.Member{}, &etcd.PKIStatus{}, &etcd.Spec{},

	&files.EtcFileSpec{}, &files.EtcFileStatus{},

	&hardware.MemoryModule{}, &hardware.PCIDevice{}, &hardware.Processor{}, &hardware.SystemInformation{},

	&k8s.APIServerConfig{}, &k8s.AdmissionControlConfig{}, &k8s.AuditPolicyConfig{}, &k8s.AuthorizationConfig{},
	&k8s.BootstrapManifestsConfig{}, &k8s.ConfigStatus{}, &k8s.ControllerManagerConfig{}, &k8s.Endpoint{},
	&k8s.ExtraManifestsConfig{}, &k8s.KubePrismConfig{}, &k8s.KubePrismEndpoints{}, &k8s.KubePrismStatuses{},
	&k8s.KubeletConfig{}, &k8s.KubeletSpec{}, &k8s.Manifest{}, &k8s.ManifestStatus{}, &k8s.NodeAnnotationSpec{},
	&k8s.NodeCordonedSpec{}, &k8s.NodeIP{}, &k8s.NodeIPConfig{}, &k8s.NodeLabelSpec{}, &k8s.NodeStatus{},
	&k8s.NodeTaintSpec{}, &k8s.Nodename{}, &k8s.SchedulerConfig{}, &k8s.SecretsStatus{}, &k8s.StaticPod{},
	&k8s.StaticPodServerStatus{}, &k8s.StaticPodStatus{},

	&kubeaccess.Config{}, &kubespan.Config{}, &kubespan.Identity{}, &kubespan.PeerStatus{},

	&network.AddressSpec{}, &network.AddressStatus{}, &network.DNSUpstream{}, &network.DeviceConfigSpec{},
	&network.HostDNSConfig{}, &network.HostnameSpec{}, &network.HostnameStatus{}, &network.LinkSpec{},
	&network.LinkStatus{}, &network.NodeAddress{}, &network.NodeAddressFilter{}, &network.OperatorSpec{},
	&network.ResolverStatus{}, &network.RouteStatus{}, &network.Status{}, &network.TimeServerStatus{},

	&perf.CPU{}, &perf.Memory{},

	&runtime.APIServiceConfig{}, &runtime.BootedEntry{}, &runtime.Diagnostic{}, &runtime.EventSinkConfig{},
	&runtime.ExtensionServiceConfig{}, &runtime.ExtensionServiceConfigStatus{}, &runtime.ExtensionStatus{},
	&runtime.KernelCmdline{}, &runtime.KernelModuleSpec{}, &runtime.KernelParamStatus{}, &runtime.KmsgLogConfig{},
	&runtime.LoadedKernelModule{}, &runtime.MachineStatus{}, &runtime.MetaKey{}, &runtime.MetaLoaded{},
	&runtime.MountStatus{}, &runtime.PlatformMetadata{}, &runtime.SecurityState{}, &runtime.UnattendedInstallStatus{},
	&runtime.UniqueMachineToken{},
	&runtime.Version{}, &runtime.WatchdogTimerStatus{},

	&secrets.API{}, &secrets.CertSAN{}, &secrets.Etcd{}, &secrets.EtcdRoot{}, &secrets.Kubelet{},
	&secrets.Kubernetes{}, &secrets.KubernetesDynamicCerts{}, &secrets.KubernetesRoot{},
	&secrets.MaintenanceRoot{}, &secrets.OSRoot{}, &secrets.Trustd{},

	&security.ImageVerificationRule{}, &siderolink.Config{}, &siderolink.Status{},

	&time.AdjtimeStatus{}, &time.Status{},

	&v1alpha1.AcquireConfigStatus{}, &v1alpha1.Service{},
}

// NewCatalog is the meta namespace that all machines of a site share: 500 machines
// with a copy each would spend most of their memory on it.
func NewCatalog(ctx context.Context) (state.CoreState, error) {
	core := inmem.NewStateWithOptions()(meta.NamespaceName)
	st := state.WrapCore(core)

	nss := registry.NewNamespaceRegistry(st)
	if err := nss.RegisterDefault(ctx); err != nil {
		return nil, err
	}

	for name, description := range namespaces {
		if err := nss.Register(ctx, name, description); err != nil {
			return nil, err
		}
	}

	types := registry.NewResourceRegistry(st)
	if err := types.RegisterDefault(ctx); err != nil {
		return nil, err
	}

	for _, definition := range definitions {
		if err := types.Register(ctx, definition); err != nil {
			return nil, err
		}
	}

	return core, nil
}
