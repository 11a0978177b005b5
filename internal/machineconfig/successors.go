package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
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

// successors of a part come before those of what it is in.
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

// refusal is the mistake of a patch that sets a part which a document has taken the place of.
func (s successor) refusal(field, contract string) *FieldError {
	instead := s.instead
	if instead == "" {
		instead = s.kind
	}

	if !strings.HasPrefix(instead, "attribute ") && !strings.HasPrefix(instead, "one of ") {
		instead = "document " + instead
	}

	return &FieldError{
		Field: field, Found: strings.Join(s.path, ".") + " of the main document, beside the document " + s.kind,
		Allowed: "either of them; configurations of contract " + contract + " have the document",
		Fix:     "write the " + strings.TrimPrefix(instead, "one of ") + " instead", Err: ErrInvalidConfig,
	}
}

// conflict finds the patch that sets a part of the main document beside the document that has taken its place. Both
// together are refused by Talos, or one of them has no effect.
func (g *Generator) conflict(d *documents, m Machine) error {
	if !g.contract.MultidocKubernetesConfigSupported() {
		return nil
	}

	main, err := mainContent(d.known)
	if err != nil {
		return err
	}

	for _, s := range successors {
		if valueIn(main, s.path) == nil || !d.known.Has(s.kind) {
			continue
		}

		field, err := g.firstPatch(m, func(p *patch) bool { return p.sets(s.path) })
		if err != nil {
			return err
		}

		if field != "" {
			return s.refusal(field, g.contract.String())
		}
	}

	return g.misplaced(d, m)
}

// misplaced finds the patch that gives a worker a document which only control planes may have.
func (g *Generator) misplaced(d *documents, m Machine) error {
	if m.Role != Worker {
		return nil
	}

	for _, document := range d.known.Documents() {
		only, ok := document.(container.ControlplaneOnlyConfig)
		if !ok {
			continue
		}

		field, err := g.firstPatch(m, func(p *patch) bool {
			return p.merge != nil && hasKind(p.merge.Documents(), only.Kind())
		})
		if err != nil || field == "" {
			return err
		}

		return &FieldError{
			Field: field, Found: "the document " + only.Kind() + " for a worker", Allowed: "it on control planes alone",
			Fix: "move it to config_patches of the control plane", Err: ErrInvalidConfig,
		}
	}

	return nil
}

func hasKind(documents []config.Document, kind string) bool {
	return slices.ContainsFunc(documents, func(d config.Document) bool { return d.Kind() == kind })
}

// firstPatch is the field of the first patch of a machine that something is true of; empty when there is none.
func (g *Generator) firstPatch(m Machine, is func(*patch) bool) (field string, err error) {
	for _, scope := range g.scopes(m) {
		for i, text := range scope.patches {
			parsed, err := g.patches.parse(at(scope.field, i), text)
			if err != nil {
				return "", err
			}

			if is(parsed) {
				return at(scope.field, i), nil
			}
		}
	}

	return "", nil
}

// mainContent is the main document as data.
func mainContent(provider coreconfig.Provider) (map[string]any, error) {
	raw := provider.RawV1Alpha1()
	if raw == nil {
		return nil, nil
	}

	encoded, err := encoder.NewEncoder(raw, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	node, err := parseDocument(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", errNotData)
	}

	content, err := decodeNode(node)
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", err)
	}

	main, _ := content.(map[string]any)

	return main, nil
}

// sets is whether the patch says something at a path of the main document.
func (p *patch) sets(path []string) bool {
	return slices.ContainsFunc(p.main, func(main map[string]any) bool { return valueIn(main, path) != nil })
}

// uselessDelete is the part of the main document that a patch deletes and that is in a document of its own. Nil when
// there is none.
func (p *patch) uselessDelete(known coreconfig.Provider) (*successor, error) {
	var deletes []successor

	for _, s := range successors {
		if known.Has(s.kind) && slices.ContainsFunc(p.main, func(main map[string]any) bool {
			return hasDelete(valueIn(main, s.path))
		}) {
			deletes = append(deletes, s)
		}
	}

	if len(deletes) == 0 {
		return nil, nil
	}

	main, err := mainContent(known)
	if err != nil {
		return nil, err
	}

	for _, s := range deletes {
		if valueIn(main, s.path) == nil {
			return &s, nil
		}
	}

	return nil, nil
}
