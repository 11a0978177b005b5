package machineset

import (
	"regexp"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
)

// The name of a metal machine is its key, unless a hostname is given. That applies when it joins. Later it keeps the
// name of its node, which Kubernetes cannot rename, even if its key changes.

// HostName is the name of a machine without its own hostname: the key, after the pool in pools of talosop_cluster.
func (g *Group) HostName(key string) string {
	return strings.ReplaceAll(g.Prefix, PoolSeparator, "-") + key
}

// chosenByTalos matches the names that Talos derives from the identity of a machine (Talos 1.13, controllers/network,
// hostname_config.go).
var chosenByTalos = regexp.MustCompile(`^talos-[0-9a-z]{3}-[0-9a-z]{3}$`)

// WithNames is a set in which machines that joined under another name than their key keep it. Machines that were
// imported without a name in their configuration, because DHCP, the platform or Talos names them, get none.
func (p Set) WithNames(recorded Record) Set {
	if p.Platform().NamesNode {
		return p
	}

	return p.Each(func(name string, m *Machine) {
		known, unset := recorded.Machines[name], recorded.Seen[name].HostnameUnset
		node := known.NodeName
		other := network.IsDNSName(node) && node != kubenames.NodeName(m.Config.Hostname, false)

		switch {
		case m.OwnHostname || known.Access == step.Maintenance || !unset && !other:
			// A machine that lost its configuration joins again, under the name that is now wanted.
		case unset || chosenByTalos.MatchString(node):
			m.Config.Hostname = ""
		default:
			m.Config.Hostname = node
		}
	})
}

// validateHostName checks that the key of a machine without a hostname is a valid one.
func (p Set) validateHostName(name string) finding.List {
	m := p.Machines[name]
	if p.Platform().NamesNode || m.OwnHostname || network.IsDNSName(m.Group.HostName(m.Key)) {
		return nil
	}

	return finding.List{invalidHostname.At(p.machinePath(name), finding.Args{"value": m.Group.HostName(m.Key)})}
}

// sameNode is the error about two machines with the same node name.
func (p Set) sameNode(name, other, node string) error {
	return p.problems(name, &machineconfig.FieldError{
		Field: "machine.hostname", Found: finding.Quote(node) + ", which is also the hostname of " + other,
		Allowed: "a unique name for each machine, because its node has that name",
		Fix:     "set another hostname for one of them",
	})
}
