// Package successors is the table of what documents of their own have taken the place of in the main document of a
// configuration, from contract v1.14.
package successors

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
)

// Successor is a part of the main document that has no effect, or is refused, beside the document that has taken its
// place (machinery 1.14, V1Alpha1ConflictValidate of the documents and v1alpha1_k8s_bridge.go).
type Successor struct {
	Path []string
	Kind string
	// Instead is where its settings go when that is not, or not only, the document.
	Instead string
}

// All are the successors; those of a part come before those of what it is in.
var All = []Successor{
	{Path: []string{"cluster", "apiServer", "admissionControl"}, Kind: k8s.KubeAPIServerConfig,
		Instead: k8s.KubeAdmissionControlConfig},
	{Path: []string{"cluster", "apiServer", "auditPolicy"}, Kind: k8s.KubeAPIServerConfig,
		Instead: k8s.KubeAuditPolicyConfig},
	{Path: []string{"cluster", "apiServer", "authorizationConfig"}, Kind: k8s.KubeAPIServerConfig,
		Instead: k8s.KubeAuthorizerConfig},
	{Path: []string{"cluster", "apiServer", "certSANs"}, Kind: k8s.KubeAPIServerConfig,
		Instead: k8s.KubeAPIServerConfig + " (certExtraSANs) or the attribute cert_sans"},
	{Path: []string{"cluster", "apiServer"}, Kind: k8s.KubeAPIServerConfig},
	{Path: []string{"cluster", "controlPlane", "localAPIServerPort"}, Kind: k8s.KubeAPIServerConfig,
		Instead: k8s.KubeAPIServerConfig + " (apiPort)"},
	{Path: []string{"cluster", "controlPlane"}, Kind: k8s.KubeClusterConfig},
	{Path: []string{"cluster", "clusterName"}, Kind: k8s.KubeClusterConfig},
	{Path: []string{"cluster", "controllerManager"}, Kind: k8s.KubeControllerManagerConfig},
	{Path: []string{"machine", "controlPlane", "controllerManager"}, Kind: k8s.KubeControllerManagerConfig},
	{Path: []string{"cluster", "scheduler"}, Kind: k8s.KubeSchedulerConfig},
	{Path: []string{"machine", "controlPlane", "scheduler"}, Kind: k8s.KubeSchedulerConfig},
	{Path: []string{"cluster", "proxy"}, Kind: k8s.KubeProxyConfig},
	{Path: []string{"cluster", "network", "cni"}, Kind: k8s.KubeNetworkConfig,
		Instead: k8s.KubeFlannelCNIConfig + " or the attribute cni"},
	{Path: []string{"cluster", "network"}, Kind: k8s.KubeNetworkConfig},
	{Path: []string{"cluster", "coreDNS"}, Kind: k8s.KubeCoreDNSConfig},
	{Path: []string{"cluster", "ca"}, Kind: k8s.KubeAPIServerCAConfig},
	{Path: []string{"cluster", "acceptedCAs"}, Kind: k8s.KubeAPIServerCAConfig},
	{Path: []string{"cluster", "aggregatorCA"}, Kind: k8s.KubeAggregatorCAConfig},
	{Path: []string{"cluster", "serviceAccount"}, Kind: k8s.KubeServiceAccountConfig},
	{Path: []string{"cluster", "secretboxEncryptionSecret"}, Kind: k8s.KubeEtcdEncryptionConfig},
	{Path: []string{"cluster", "aescbcEncryptionSecret"}, Kind: k8s.KubeEtcdEncryptionConfig},
	{Path: []string{"cluster", "id"}, Kind: cluster.DiscoveryIdentityKind},
	{Path: []string{"cluster", "secret"}, Kind: cluster.DiscoveryIdentityKind},
	{Path: []string{"cluster", "discovery"}, Kind: cluster.DiscoveryServiceKind,
		Instead: cluster.DiscoveryServiceKind + " or the attribute discovery"},
	{Path: []string{"cluster", "allowSchedulingOnControlPlanes"}, Kind: k8s.KubeNodeConfig,
		Instead: "attribute allow_scheduling_on_control_planes"},
	{Path: []string{"machine", "kubelet", "nodeIP"}, Kind: k8s.KubeletConfig, Instead: k8s.KubeNodeConfig},
	{Path: []string{"machine", "kubelet", "registerWithFQDN"}, Kind: k8s.KubeletConfig, Instead: k8s.KubeNodeConfig},
	{Path: []string{"machine", "kubelet", "skipNodeRegistration"}, Kind: k8s.KubeletConfig, Instead: k8s.KubeNodeConfig},
	{Path: []string{"machine", "kubelet", "credentialProviderConfig"}, Kind: k8s.KubeletConfig,
		Instead: k8s.KubeCredentialProviderConfig},
	{Path: []string{"machine", "kubelet", "extraConfig"}, Kind: k8s.KubeletConfig,
		Instead: k8s.KubeletConfig + " (config)"},
	{Path: []string{"machine", "kubelet", "extraMounts"}, Kind: k8s.KubeletConfig, Instead: "one of user volumes " +
		"(UserVolumeConfig), which are mounted for the kubelet, as " + k8s.KubeletConfig + " has no mounts"},
	{Path: []string{"machine", "kubelet"}, Kind: k8s.KubeletConfig},
	{Path: []string{"machine", "nodeLabels"}, Kind: k8s.KubeNodeConfig, Instead: k8s.KubeNodeConfig + " (labels)"},
	{Path: []string{"machine", "nodeAnnotations"}, Kind: k8s.KubeNodeConfig,
		Instead: k8s.KubeNodeConfig + " (annotations)"},
	{Path: []string{"machine", "nodeTaints"}, Kind: k8s.KubeNodeConfig, Instead: k8s.KubeNodeConfig + " (taints)"},
	{Path: []string{"machine", "features", "kubePrism"}, Kind: k8s.KubePrismConfig},
	{Path: []string{"machine", "features", "kubernetesTalosAPIAccess"}, Kind: k8s.KubeTalosAPIAccessConfig},
	{Path: []string{"machine", "features", "imageCache"}, Kind: cri.ImageCacheConfig},
	{Path: []string{"machine", "features", "hostDNS"}, Kind: network.ResolverKind,
		Instead: network.ResolverKind + " (hostDNS)"},
	{Path: []string{"machine", "network", "nameservers"}, Kind: network.ResolverKind},
	{Path: []string{"machine", "network", "searchDomains"}, Kind: network.ResolverKind},
	{Path: []string{"machine", "network", "disableSearchDomain"}, Kind: network.ResolverKind},
	{Path: []string{"machine", "install"}, Kind: runtime.UnattendedInstallConfigKind,
		Instead: runtime.UnattendedInstallConfigKind + " or the attribute install"},
	{Path: []string{"machine", "baseRuntimeSpecOverrides"}, Kind: cri.CRIBaseRuntimeSpecConfigKind},
}
