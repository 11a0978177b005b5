package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// level is the settings of one of the levels that a machine belongs to, and what fields of them begin with.
type level struct {
	prefix string
	values setting.Values
}

// levels are those of a machine, the most general one first.
func (g *Generator) levels(m Machine) []level {
	return []level{{"", g.cluster.Settings}, {"pool.", m.PoolSettings}, {"machine.", m.Settings}}
}

// VIPWithoutLink reports whether a machine is to have a virtual IP on the link that has its address.
func VIPWithoutLink(c Cluster, m Machine) bool {
	vip, ok := setting.Merge(c.Settings, m.PoolSettings, m.Settings)[setting.VIP].(*setting.VIPConfig)

	return ok && vip.Link == "" && m.Role == ControlPlane
}

// VIPField names the setting that gives a machine its virtual IP, for a message.
func VIPField(m Machine) *FieldError {
	name := setting.VIP.Name

	switch {
	case m.Settings[setting.VIP] != nil:
		name = "machine." + name
	case m.PoolSettings[setting.VIP] != nil:
		name = "pool." + name
	}

	return &FieldError{Field: name}
}

// putSettings writes the settings of all levels into a generated configuration.
func (g *Generator) putSettings(known []config.Document, main *v1alpha1.Config, m Machine) []config.Document {
	c := setting.Config{Main: main, Documents: known, Contract: g.contract, Link: m.Link}

	var all []setting.Values
	for _, l := range g.levels(m) {
		all = append(all, l.values)
	}

	setting.Merge(all...).Put(&c)

	return c.Documents
}

// checkSettings reports errors in the settings of one level.
func checkSettings(found *problems, l level, c Cluster, worker bool, s strictness) {
	target := setting.Target{Container: c.Container, Worker: worker, FindsLinks: c.FindsLinks,
		Partial: s == partial}

	// A wrong contract is reported where it is set.
	if contract, err := parseContract(c.Contract); err == nil {
		target.Contract = contract
	}

	for _, p := range l.values.Check(target) {
		found.add(l.prefix+p.Field, p.Found, p.Allowed, p.Fix)
	}
}
