package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
)

// successor is a part of the main document that has no effect, or is refused, beside the document that has taken its
// place (machinery 1.14, V1Alpha1ConflictValidate of the documents and v1alpha1_k8s_bridge.go).
type successor struct {
	path []string
	kind string
	// instead is where its settings go when that is not, or not only, the document.
	instead string
}

// successors are what documents of their own have taken the place of in the main document, from contract v1.14. Those
// of a part come before those of what it is in.
var successors = []successor{
	{path: []string{"cluster", "apiServer", "admissionControl"}, kind: k8s.KubeAPIServerConfig,
		instead: k8s.KubeAdmissionControlConfig},
	{path: []string{"cluster", "apiServer", "auditPolicy"}, kind: k8s.KubeAPIServerConfig,
		instead: k8s.KubeAuditPolicyConfig},
	{path: []string{"cluster", "apiServer", "authorizationConfig"}, kind: k8s.KubeAPIServerConfig,
		instead: k8s.KubeAuthorizerConfig},
	{path: []string{"cluster", "apiServer", "certSANs"}, kind: k8s.KubeAPIServerConfig,
		instead: k8s.KubeAPIServerConfig + " (certExtraSANs) or the attribute cert_sans"},
	{path: []string{"cluster", "apiServer"}, kind: k8s.KubeAPIServerConfig},
	{path: []string{"cluster", "controlPlane", "localAPIServerPort"}, kind: k8s.KubeAPIServerConfig,
		instead: k8s.KubeAPIServerConfig + " (apiPort)"},
	{path: []string{"cluster", "controlPlane"}, kind: k8s.KubeClusterConfig},
	{path: []string{"cluster", "clusterName"}, kind: k8s.KubeClusterConfig},
	{path: []string{"cluster", "controllerManager"}, kind: k8s.KubeControllerManagerConfig},
	{path: []string{"machine", "controlPlane", "controllerManager"}, kind: k8s.KubeControllerManagerConfig},
	{path: []string{"cluster", "scheduler"}, kind: k8s.KubeSchedulerConfig},
	{path: []string{"machine", "controlPlane", "scheduler"}, kind: k8s.KubeSchedulerConfig},
	{path: []string{"cluster", "proxy"}, kind: k8s.KubeProxyConfig},
	{path: []string{"cluster", "network", "cni"}, kind: k8s.KubeNetworkConfig,
		instead: k8s.KubeFlannelCNIConfig + " or the attribute cni"},
	{path: []string{"cluster", "network"}, kind: k8s.KubeNetworkConfig},
	{path: []string{"cluster", "coreDNS"}, kind: k8s.KubeCoreDNSConfig},
	{path: []string{"cluster", "ca"}, kind: k8s.KubeAPIServerCAConfig},
	{path: []string{"cluster", "acceptedCAs"}, kind: k8s.KubeAPIServerCAConfig},
	{path: []string{"cluster", "aggregatorCA"}, kind: k8s.KubeAggregatorCAConfig},
	{path: []string{"cluster", "serviceAccount"}, kind: k8s.KubeServiceAccountConfig},
	{path: []string{"cluster", "secretboxEncryptionSecret"}, kind: k8s.KubeEtcdEncryptionConfig},
	{path: []string{"cluster", "aescbcEncryptionSecret"}, kind: k8s.KubeEtcdEncryptionConfig},
	{path: []string{"cluster", "id"}, kind: cluster.DiscoveryIdentityKind},
	{path: []string{"cluster", "secret"}, kind: cluster.DiscoveryIdentityKind},
	{path: []string{"cluster", "discovery"}, kind: cluster.DiscoveryServiceKind,
		instead: cluster.DiscoveryServiceKind + " or the attribute discovery"},
	{path: []string{"cluster", "allowSchedulingOnControlPlanes"}, kind: k8s.KubeNodeConfig,
		instead: "attribute allow_scheduling_on_control_planes"},
	{path: []string{"machine", "kubelet", "nodeIP"}, kind: k8s.KubeletConfig, instead: k8s.KubeNodeConfig},
	{path: []string{"machine", "kubelet", "registerWithFQDN"}, kind: k8s.KubeletConfig, instead: k8s.KubeNodeConfig},
	{path: []string{"machine", "kubelet", "skipNodeRegistration"}, kind: k8s.KubeletConfig, instead: k8s.KubeNodeConfig},
	{path: []string{"machine", "kubelet", "credentialProviderConfig"}, kind: k8s.KubeletConfig,
		instead: k8s.KubeCredentialProviderConfig},
	{path: []string{"machine", "kubelet", "extraConfig"}, kind: k8s.KubeletConfig,
		instead: k8s.KubeletConfig + " (config)"},
	{path: []string{"machine", "kubelet", "extraMounts"}, kind: k8s.KubeletConfig, instead: "one of user volumes " +
		"(UserVolumeConfig), which are mounted for the kubelet, as " + k8s.KubeletConfig + " has no mounts"},
	{path: []string{"machine", "kubelet"}, kind: k8s.KubeletConfig},
	{path: []string{"machine", "nodeLabels"}, kind: k8s.KubeNodeConfig, instead: k8s.KubeNodeConfig + " (labels)"},
	{path: []string{"machine", "nodeAnnotations"}, kind: k8s.KubeNodeConfig,
		instead: k8s.KubeNodeConfig + " (annotations)"},
	{path: []string{"machine", "nodeTaints"}, kind: k8s.KubeNodeConfig, instead: k8s.KubeNodeConfig + " (taints)"},
	{path: []string{"machine", "features", "kubePrism"}, kind: k8s.KubePrismConfig},
	{path: []string{"machine", "features", "kubernetesTalosAPIAccess"}, kind: k8s.KubeTalosAPIAccessConfig},
	{path: []string{"machine", "features", "imageCache"}, kind: cri.ImageCacheConfig},
	{path: []string{"machine", "features", "hostDNS"}, kind: network.ResolverKind,
		instead: network.ResolverKind + " (hostDNS)"},
	{path: []string{"machine", "network", "nameservers"}, kind: network.ResolverKind},
	{path: []string{"machine", "network", "searchDomains"}, kind: network.ResolverKind},
	{path: []string{"machine", "network", "disableSearchDomain"}, kind: network.ResolverKind},
	{path: []string{"machine", "install"}, kind: runtime.UnattendedInstallConfigKind,
		instead: runtime.UnattendedInstallConfigKind + " or the attribute install"},
	{path: []string{"machine", "baseRuntimeSpecOverrides"}, kind: cri.CRIBaseRuntimeSpecConfigKind},
}
