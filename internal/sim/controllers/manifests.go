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

// manifestValues are what the manifests are rendered from.
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

	for _, inline := range cluster.InlineManifests() {
		items, err := parseManifest(strings.NewReader(inline.Contents()))
		if err != nil {
			return fmt.Errorf("parse manifest %s: %w", inline.Name(), err)
		}

		manifests["99-"+inline.Name()] = items
	}

	return c.replaceManifests(manifests)
}

// replaceManifests writes manifests and removes those that are no more.
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

// manifestsConfig is what the configuration says about the manifests.
func manifestsConfig(cfg talosconfig.Config) k8s.BootstrapManifestsConfigSpec {
	cluster := cfg.Cluster()
	network := cluster.Network()

	spec := k8s.BootstrapManifestsConfigSpec{
		Server: cluster.Endpoint().String(), ClusterDomain: network.DNSDomain(), PodCIDRs: network.PodCIDRs(),
		ProxyEnabled: cluster.Proxy().Enabled(), ProxyImage: cluster.Proxy().Image(), ProxyArgs: proxyArgs(cluster),
		CoreDNSEnabled: cluster.CoreDNS().Enabled(), CoreDNSImage: cluster.CoreDNS().Image(),
		FlannelEnabled: network.CNI().Name() == constants.FlannelCNI,
		FlannelImage:   "ghcr.io/siderolabs/flannel:" + constants.FlannelVersion,
		CNIName:        network.CNI().Name(),
	}

	if prism := cfg.Machine().Features().KubePrism(); prism.Enabled() {
		spec.Server = fmt.Sprintf("https://127.0.0.1:%d", prism.Port())
	}

	if ips, err := network.DNSServiceIPs(); err == nil && len(ips) > 0 {
		spec.DNSServiceIP = ips[0].String()
	}

	return spec
}

// proxyArgs are the flags of kube-proxy, in Talos's order.
func proxyArgs(cluster talosconfig.ClusterConfig) []string {
	args := map[string][]string{
		"cluster-cidr":           {strings.Join(cluster.Network().PodCIDRs(), ",")},
		"hostname-override":      {"$(NODE_NAME)"},
		"kubeconfig":             {"/etc/kubernetes/kubeconfig"},
		"proxy-mode":             {"nftables"},
		"conntrack-max-per-core": {"0"},
	}

	if mode := cluster.Proxy().Mode(); mode != "" {
		args["proxy-mode"] = []string{mode}
	}

	maps.Copy(args, cluster.Proxy().ExtraArgs())

	return flags(args)
}
