package clusterhandle

import (
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Settings reads the settings in a handle for the configuration of every machine. Values with several spellings get
// one of them.
func (h HandleModel) Settings(r *tf.Reader) machineconfig.Cluster {
	c := machineconfig.Cluster{
		Name:              r.Text(h.Name),
		Endpoint:          r.Text(h.Endpoint),
		KubernetesVersion: r.Text(h.KubernetesVersion),
		Contract:          r.Text(h.VersionContract),
		Settings:          settings.Read(r, h),
		Patches:           r.Texts(h.ConfigPatches),
	}
	settings.ReadCluster(r, &c, h)

	c.PodCIDRs, c.ServiceCIDRs = network.Canonical(c.PodCIDRs), network.Canonical(c.ServiceCIDRs)
	c.DNSDomain = network.CanonicalDomain(c.DNSDomain)

	return c
}
