package talossim

import (
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// publishManifests writes the configuration of the bootstrap manifests (Talos 1.13,
// k8s/control_plane.go).
func (b *boot) publishManifests(cfg talosconfig.Config) {
	cluster := cfg.Cluster()

	modify(b, k8s.NewBootstrapManifestsConfig(), func(r *k8s.BootstrapManifestsConfig) {
		s := r.TypedSpec()
		s.Server = cluster.Endpoint().String()
		s.ClusterDomain = cluster.Network().DNSDomain()
		s.PodCIDRs = cluster.Network().PodCIDRs()
		s.ProxyEnabled, s.ProxyImage = cluster.Proxy().Enabled(), cluster.Proxy().Image()
		s.CoreDNSEnabled, s.CoreDNSImage = cluster.CoreDNS().Enabled(), cluster.CoreDNS().Image()
		s.FlannelEnabled = cluster.Network().CNI().Name() == constants.FlannelCNI
		s.CNIName = cluster.Network().CNI().Name()
	})
}
