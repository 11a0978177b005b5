// Package manifests says which parts of the configuration of a control plane make its bootstrap manifests, and
// which of them differ between two configurations. Pure.
package manifests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// Source is a part of a configuration that Talos makes bootstrap manifests of.
type Source struct {
	// Name says which, such as "kube-proxy" or "inline manifest metrics", without anything that may be secret.
	Name string
	// Objects are those of an inline manifest, such as "ConfigMap kube-system/metrics". Those of others only Talos knows.
	Objects []string
	// key identifies it even if names are similar, and content is all that the manifests are made of.
	key, content string
}

// Of returns the sources of the bootstrap manifests of a control plane (Talos 1.14, k8s/control_plane.go:
// ControlPlaneBootstrapManifestsController, ControlPlaneExtraManifestsController). What follows the versions of Talos
// and Kubernetes is left out: upgrades bring it. So is the bootstrap token, which keys are rotated with.
func Of(configuration []byte) ([]Source, error) {
	provider, err := configloader.NewFromBytes(configuration)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}

	network := provider.K8sNetworkConfig()
	if network == nil || provider.K8sClusterConfig() == nil {
		return nil, nil
	}

	server := provider.K8sClusterConfig().ClusterEndpoint().String()
	if prism := provider.K8sKubePrismConfig(); prism != nil {
		server = fmt.Sprintf("KubePrism at port %d", prism.Port())
	}

	var sources []Source

	add := func(name string, content ...any) {
		sources = append(sources, Source{Name: name, content: text(content)})
	}

	if proxy := provider.K8sProxyConfig(); proxy != nil && proxy.Enabled() {
		add("kube-proxy", server, network.PodCIDRs(), proxy.Mode(), proxy.ExtraArgs(), resources(proxy.Resources()),
			proxy.UseConfigFile(), proxy.Config())
	}

	if dns := provider.K8sCoreDNSConfig(); dns != nil && dns.Enabled() {
		add("CoreDNS", network.DNSDomain(), network.ServiceCIDRs(), dns.Image())
	}

	if flannel := provider.K8sFlannelCNIConfig(); flannel != nil {
		add("Flannel", server, network.PodCIDRs(), flannel.BackendType(), flannel.BackendPort().ValueOrZero(),
			flannel.BackendMTU().ValueOrZero(), kubeSpan(provider), flannel.BackendExtraConfig(), flannel.ExtraArgs(),
			resources(flannel.Resources()), flannel.KubeNetworkPoliciesEnabled())
	}

	if provider.K8sTalosAPIAccessConfig() != nil {
		add("access to the Talos API from Kubernetes")
	}

	return append(sources, extras(provider)...), nil
}

// extras are the sources that the configuration adds to what Talos renders.
func extras(provider config.Config) []Source {
	var sources []Source

	if main := provider.Cluster(); main != nil && main.ExternalCloudProvider().Enabled() {
		for _, address := range main.ExternalCloudProvider().ManifestURLs() {
			sources = append(sources, Source{Name: "manifest of the cloud provider " + WithoutSecrets(address), key: address})
		}
	}

	for _, extra := range provider.K8sExternalManifestConfigs() {
		name := extra.Name()
		if name == extra.URL() { // the main document has no names for them
			name = WithoutSecrets(name)
		}

		sources = append(sources, Source{
			Name: "extra manifest " + name, key: extra.Name(), content: text([]any{extra.URL(), extra.Headers()}),
		})
	}

	for _, inline := range provider.K8sInlineManifestConfigs() {
		sources = append(sources, Source{
			Name: "inline manifest " + inline.Name(), Objects: objectsOf(inline.Contents()), content: inline.Contents(),
		})
	}

	return sources
}

// Changes lists the sources that differ, one line each, with the known objects. Removed sources come first, whose
// objects are pruned, then new and changed ones. It is empty when no source of manifests differs.
func Changes(before, after []Source) []string {
	var lines []string

	for _, was := range before {
		if at := index(after, was); at < 0 {
			lines = append(lines, "without "+was.String())
		}
	}

	for _, now := range after {
		if at := index(before, now); at < 0 || before[at].content != now.content {
			lines = append(lines, now.String())
		}
	}

	return lines
}

// String is the name with the objects that are known.
func (s Source) String() string {
	if len(s.Objects) == 0 {
		return s.Name
	}

	return fmt.Sprintf("%s (%s)", s.Name, strings.Join(s.Objects, ", "))
}

func index(sources []Source, of Source) int {
	return slices.IndexFunc(sources, func(s Source) bool { return s.Name == of.Name && s.key == of.key })
}

// text is values in a form that differs when they do.
func text(values []any) string {
	encoded, err := json.Marshal(values)
	if err != nil {
		return fmt.Sprint(values) // a map with keys that are no texts, which YAML allows
	}

	return string(encoded)
}

func resources(r config.Resources) []string {
	return []string{r.CPURequests(), r.MemoryRequests(), r.CPULimits(), r.MemoryLimits()}
}

// kubeSpan is the size of packets that Flannel takes from KubeSpan; 0 without it.
func kubeSpan(provider config.Config) uint32 {
	if span := provider.NetworkKubeSpanConfig(); span != nil && span.Enabled() {
		return span.MTU()
	}

	return 0
}

// WithoutSecrets is the URL of a manifest without what may be secret in it: its user, query and fragment.
func WithoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an extra manifest whose URL cannot be read"
	}

	u.User, u.RawQuery, u.Fragment = nil, "", ""

	return u.String()
}

// objectsOf names the objects of a manifest, as far as it can be read.
func objectsOf(manifest string) []string {
	var names []string

	if expansion.CheckYAML([]byte(manifest)) != nil {
		return nil
	}

	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))

	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) || err != nil {
			return names
		}

		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}

		if yaml.Unmarshal(document, &object) != nil || object.Kind == "" {
			continue
		}

		name := object.Metadata.Name
		if object.Metadata.Namespace != "" {
			name = object.Metadata.Namespace + "/" + name
		}

		names = append(names, object.Kind+" "+name)
	}
}
