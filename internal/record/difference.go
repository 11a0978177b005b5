package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Kind is in what respect a machine differs from what was applied last. State stores this value.
type Kind string

// The kinds of differences and their arguments.
const (
	// AddressDiffers is a machine that answers at the address Found instead of Wanted.
	AddressDiffers Kind = "address"
	// TalosDiffers is a version of Talos, and SchematicDiffers a schematic: Found runs instead of Wanted.
	TalosDiffers     Kind = "talos"
	SchematicDiffers Kind = "schematic"
	// ConfigurationDiffers is a Place of the machine configuration.
	ConfigurationDiffers Kind = "configuration"
	// UnreadableSecrets is a key for Secrets, Found, that API servers would lack with what was applied last. Wanted is its
	// digest.
	UnreadableSecrets Kind = "unreadable_secrets"
	// ImageDiffers is the image of a Kubernetes Component: Found instead of Wanted. Found is empty for the Talos
	// default.
	ImageDiffers Kind = "image"
	// RunsOther is a Kubernetes Component that runs in version Found, while its configured image is Wanted.
	RunsOther Kind = "running"
	// MetaDiffers is META values at Keys that the provider configuration sets.
	MetaDiffers Kind = "meta"
	// Wiped is a machine that lost its configuration.
	Wiped Kind = "wiped"
	// Unproven is a machine in maintenance mode that does not prove that it is the one that joined.
	Unproven Kind = "unproven"
	// NoMember is a control plane without an etcd member.
	NoMember Kind = "no_member"
	// LeftEtcd is a control plane that left etcd on request: it has no etcd data, and joins again after a reboot.
	LeftEtcd Kind = "left_etcd"
	// EtcdGoesBack is a control plane whose etcd is being downgraded to Wanted by a run that ended before all machines
	// followed.
	EtcdGoesBack Kind = "etcd_goes_back"
	// NoNode is a machine without a Kubernetes node.
	NoNode Kind = "no_node"
	// OwnedByAnother is a machine whose node is owned by another resource.
	OwnedByAnother Kind = "owned_by_another"
	// MarkUnproven is a machine whose node has an owner mark, Found, that no key of the cluster authenticates.
	MarkUnproven Kind = "mark_unproven"
	// OthersWork is a control plane in a cluster where control planes of other resources work.
	OthersWork Kind = "others_work"
	// NotOnHost is a container that has no objects on its host cluster.
	NotOnHost Kind = "not_on_host"
	// HostDiffers is an object of a container on its host cluster, Found, which is repaired before the first step.
	HostDiffers Kind = "host"
	// HostReplaces is the reason, Found, why the pod of a container is replaced.
	HostReplaces Kind = "host_replaces"
	// HostVolumesLost is a container whose volumes are permanently lost.
	HostVolumesLost Kind = "host_volumes_lost"
	// HostStays is an object of a container, Found, that no apply repairs.
	HostStays Kind = "host_stays"
	// NotReady is the reason, Found, why a machine is not ready. An apply waits for it.
	NotReady Kind = "not_ready"
	// EtcdNotHealthy is a control plane whose etcd cluster is not healthy or has an alarm: Found.
	EtcdNotHealthy Kind = "etcd_not_healthy"
	// Former is a sentence, Found, from a state without kinds. It is only displayed.
	Former Kind = "former"
)

// Difference is one difference between a machine and what was applied last: a kind and its arguments.
type Difference struct {
	Kind      Kind                `json:"kind"`
	Place     *fieldpath.Place    `json:"place,omitempty"`
	Component kubenames.Component `json:"component,omitempty"`
	Keys      metakey.Keys        `json:"keys,omitempty"`
	Found     string              `json:"found,omitempty"`
	Wanted    string              `json:"wanted,omitempty"`
}

// Drift is how a machine differs from what was applied last. A refresh observes it.
type Drift []Difference

// wholly are the kinds without arguments, with their text.
var wholly = map[Kind]string{
	Wiped:           "in maintenance mode without a configuration",
	Unproven:        "in maintenance mode, and not proven to be the machine that joined",
	NoMember:        "no etcd member",
	LeftEtcd:        "left etcd, and its etcd does not run",
	NoNode:          "no Kubernetes node",
	OwnedByAnother:  "its node is marked as owned by another resource or state",
	OthersWork:      "control planes of other resources are healthy",
	NotOnHost:       "no pod and no volumes in the host cluster",
	HostVolumesLost: "host cluster: its volumes are lost, with their data",
}

// String describes the difference.
func (d Difference) String() string {
	switch d.Kind {
	case AddressDiffers:
		return fmt.Sprintf("address: responds at %s, not at %s", d.Found, d.Wanted)
	case TalosDiffers:
		return fmt.Sprintf("Talos: running %s, expected %s", d.Found, d.Wanted)
	case SchematicDiffers:
		return fmt.Sprintf("schematic: running %s, expected %s",
			step.ShortID(cmp.Or(d.Found, "none")), step.ShortID(d.Wanted))
	case ConfigurationDiffers:
		return "configuration: " + d.place()
	case UnreadableSecrets:
		return "Secrets are encrypted with " + d.Found + ", which the secrets of the cluster do not have"
	case ImageDiffers:
		return fmt.Sprintf("image of %s: %s, expected %s", d.Component, cmp.Or(d.Found, "default of Talos"), d.Wanted)
	case RunsOther:
		return fmt.Sprintf("%s: running %s, but its image is %s", d.Component, d.Found, d.Wanted)
	case MetaDiffers:
		return "META: differs from `clusters` of the provider: " + metakey.Texts(d.Keys)
	case EtcdGoesBack:
		return "etcd downgrade to version " + d.Wanted + " is enabled"
	case MarkUnproven:
		return fmt.Sprintf("the owner mark on its node is not authentic and is ignored; it names %q", d.Found)
	case HostDiffers, HostReplaces:
		return "host cluster: " + d.Found
	case HostStays:
		return "host cluster, left as it is: " + d.Found
	case NotReady:
		return "not ready: " + d.Found
	case EtcdNotHealthy:
		return "etcd is not healthy: " + d.Found
	case Former:
		return d.Found
	default:
		return wholly[d.Kind]
	}
}

// place is where the configuration differs. In a state without places it is the text Found.
func (d Difference) place() string {
	if d.Place == nil {
		return d.Found
	}

	return d.Place.String()
}

// Lines describes the drift, one line for each difference.
func (d Drift) Lines() []string {
	var lines []string

	for _, difference := range d {
		lines = append(lines, difference.String())
	}

	return lines
}

// Has reports whether the drift has a difference of a kind.
func (d Drift) Has(kind Kind) bool { return len(d.Of(kind)) > 0 }

// Of is the differences of some kinds.
func (d Drift) Of(kinds ...Kind) Drift {
	return slices.DeleteFunc(slices.Clone(d), func(one Difference) bool { return !slices.Contains(kinds, one.Kind) })
}

// Without is the differences of all other kinds.
func (d Drift) Without(kinds ...Kind) Drift {
	return slices.DeleteFunc(slices.Clone(d), func(one Difference) bool { return slices.Contains(kinds, one.Kind) })
}

// First is the first difference of a kind; the zero value if there is none.
func (d Drift) First(kind Kind) Difference {
	for _, difference := range d {
		if difference.Kind == kind {
			return difference
		}
	}

	return Difference{}
}

// OfHost are the kinds that are observed on the host cluster of a container.
var OfHost = []Kind{HostDiffers, HostReplaces, HostVolumesLost, HostStays}

// saysNotReady are the kinds that imply that a machine is not ready.
var saysNotReady = []Kind{Wiped, Unproven, NoMember, LeftEtcd, NoNode, NotOnHost, HostVolumesLost, NotReady}

// SaysNotReady reports whether the drift implies that the machine is not ready.
func (d Drift) SaysNotReady() bool { return slices.ContainsFunc(saysNotReady, d.Has) }

// Places are where the configuration differs.
func (d Drift) Places() []fieldpath.Place {
	var places []fieldpath.Place

	for _, difference := range d {
		if difference.Place != nil {
			places = append(places, *difference.Place)
		}
	}

	return places
}

// MetaKeys are the META keys that differ.
func (d Drift) MetaKeys() []uint8 {
	var keys []uint8
	for _, difference := range d {
		keys = append(keys, difference.Keys...)
	}

	return keys
}
