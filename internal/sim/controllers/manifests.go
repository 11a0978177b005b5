package controllers

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// The manifests have the names and objects of Talos's, without what only matters to
// something that runs them (Talos 1.13, k8s/manifest.go and k8s/internal/k8stemplates).
//
//go:embed manifests/*.yaml
var manifestFiles embed.FS

var manifestTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"quote": strconv.Quote}).ParseFS(manifestFiles,
		"manifests/*.yaml"))
})

// manifestValues are the values for rendering the manifests.
type manifestValues struct {
	k8s.BootstrapManifestsConfigSpec

	TokenID, TokenSecret string
}

// publishManifests writes the bootstrap manifests' configuration and what is rendered
// from it (Talos 1.13, k8s/control_plane.go, k8s/manifest.go and k8s/extra_manifest.go).
// Manifests at URLs are not fetched.
func (c *Controllers) publishManifests(cfg talosconfig.Config) error {
	cluster := cfg.Cluster()
	values := manifestValues{
		BootstrapManifestsConfigSpec: manifestsConfig(cfg), TokenID: cluster.Token().ID(),
		TokenSecret: cluster.Token().Secret(),
	}

	machined.Modify(c.Boot, k8s.NewBootstrapManifestsConfig(),
		func(r *k8s.BootstrapManifestsConfig) { *r.TypedSpec() = values.BootstrapManifestsConfigSpec })

	manifests := map[string][]k8s.SingleManifest{}

	for _, t := range manifestTemplates().Templates() {
		var rendered bytes.Buffer
		if err := t.Execute(&rendered, values); err != nil {
			return fmt.Errorf("render manifest: %w", err)
		}

		items, err := parseManifest(&rendered)
		if err != nil {
			return fmt.Errorf("parse manifest %s: %w", t.Name(), err)
		}

		if len(items) > 0 {
			manifests[strings.TrimSuffix(t.Name(), ".yaml")] = items
		}
	}

	extra := k8s.ExtraManifestsConfigSpec{}

	for _, inline := range cfg.K8sInlineManifestConfigs() {
		extra.ExtraManifests = append(extra.ExtraManifests, k8s.ExtraManifest{
			Name: inline.Name(), Priority: "99", InlineManifest: inline.Contents(),
		})

		items, err := parseManifest(strings.NewReader(inline.Contents()))
		if err != nil {
			return fmt.Errorf("parse manifest %s: %w", inline.Name(), err)
		}

		manifests["99-"+inline.Name()] = items
	}

	machined.Modify(c.Boot, k8s.NewExtraManifestsConfig(),
		func(r *k8s.ExtraManifestsConfig) { *r.TypedSpec() = extra })

	return c.replaceManifests(manifests)
}

// replaceManifests writes manifests and removes obsolete ones.
func (c *Controllers) replaceManifests(manifests map[string][]k8s.SingleManifest) error {
	list, err := c.Resources.List(c.Ctx, k8s.NewManifest(k8s.ControlPlaneNamespaceName, "").Metadata())
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}

	for _, id := range slices.Sorted(maps.Keys(manifests)) {
		machined.Modify(c.Boot, k8s.NewManifest(k8s.ControlPlaneNamespaceName, id),
			func(r *k8s.Manifest) { r.TypedSpec().Items = manifests[id] })
	}

	defer c.manifests.Ring()

	for _, old := range list.Items {
		if _, wanted := manifests[old.Metadata().ID()]; !wanted {
			machined.Remove(c.Boot, old)
		}
	}

	return nil
}

// parseManifest reads the objects of a multi-document manifest.
func parseManifest(r io.Reader) ([]k8s.SingleManifest, error) {
	var items []k8s.SingleManifest

	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))

	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return items, nil
		}

		if err != nil {
			return nil, err
		}

		encoded, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}

		item := k8s.SingleManifest{}
		if err := utiljson.Unmarshal(encoded, &item.Object); err != nil {
			return nil, err
		}

		if len(item.Object) > 0 {
			items = append(items, item)
		}
	}
}

// flannelImage is the one of Talos 1.13; that of 1.14 has another tag and is deployed in the same way.
const flannelImage = "ghcr.io/siderolabs/flannel:v0.28.5"

// manifestsConfig is the part of the configuration about the manifests.
func manifestsConfig(cfg talosconfig.Config) k8s.BootstrapManifestsConfigSpec {
	network, proxy, dns := cfg.K8sNetworkConfig(), cfg.K8sProxyConfig(), cfg.K8sCoreDNSConfig()

	spec := k8s.BootstrapManifestsConfigSpec{
		Server: cfg.K8sClusterConfig().ClusterEndpoint().String(), ClusterDomain: network.DNSDomain(),
		PodCIDRs: texts(network.PodCIDRs()), ProxyEnabled: proxy.Enabled(), ProxyImage: proxy.Image(),
		ProxyArgs: proxyArgs(cfg), CoreDNSEnabled: dns.Enabled(), CoreDNSImage: dns.Image(),
		FlannelEnabled: cfg.K8sFlannelCNIConfig() != nil, FlannelImage: flannelImage, CNIName: cniName(cfg),
	}

	if prism := cfg.K8sKubePrismConfig(); prism != nil {
		spec.Server = fmt.Sprintf("https://127.0.0.1:%d", prism.Port())
	}

	if ips := k8s.DNSServiceAddrs(network.ServiceCIDRs()); len(ips) > 0 {
		spec.DNSServiceIP = ips[0].String()
	}

	return spec
}

// cniName is the name in the main document, or what follows from the documents (Talos 1.14, k8s/control_plane.go).
func cniName(cfg talosconfig.Config) string {
	if raw, ok := cfg.(interface{ RawV1Alpha1() *v1alpha1.Config }); ok {
		if main := raw.RawV1Alpha1(); main != nil && main.ClusterConfig != nil && main.ClusterConfig.ClusterNetwork != nil {
			return main.ClusterConfig.CNI().CNIName
		}
	}

	if cfg.K8sFlannelCNIConfig() != nil {
		return constants.FlannelCNI
	}

	return constants.NoneCNI
}

// proxyArgs are the flags of kube-proxy, in Talos's order.
func proxyArgs(cfg talosconfig.Config) []string {
	args := map[string][]string{
		"cluster-cidr":           {strings.Join(texts(cfg.K8sNetworkConfig().PodCIDRs()), ",")},
		"hostname-override":      {"$(NODE_NAME)"},
		"kubeconfig":             {"/etc/kubernetes/kubeconfig"},
		"proxy-mode":             {"nftables"},
		"conntrack-max-per-core": {"0"},
	}

	if mode := cfg.K8sProxyConfig().Mode(); mode != "" {
		args["proxy-mode"] = []string{mode}
	}

	maps.Copy(args, cfg.K8sProxyConfig().ExtraArgs())

	return flags(args)
}
