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

// Kind says what of a machine differs from what was applied last. State has it as it is here.
type Kind string

// The kinds of differences, and which arguments they have.
const (
	// AddressDiffers is a machine that answers at the address Found, and not at Wanted.
	AddressDiffers Kind = "address"
	// TalosDiffers is a version of Talos, and SchematicDiffers a schematic: Found runs, and not Wanted.
	TalosDiffers     Kind = "talos"
	SchematicDiffers Kind = "schematic"
	// ConfigurationDiffers is a Place of the machine configuration.
	ConfigurationDiffers Kind = "configuration"
	// ImageDiffers is the image of a Component of Kubernetes: Found, empty for that of Talos, and not Wanted.
	ImageDiffers Kind = "image"
	// RunsOther is a Component of Kubernetes that runs in version Found, while its image is Wanted.
	RunsOther Kind = "running"
	// MetaDiffers is values of META at Keys that are in the provider's configuration.
	MetaDiffers Kind = "meta"
	// Wiped is a machine that lost its configuration.
	Wiped Kind = "wiped"
	// Unproven is a machine that waits in maintenance mode and does not prove to be the one that joined.
	Unproven Kind = "unproven"
	// NoMember is a control plane without a member in etcd.
	NoMember Kind = "no_member"
	// LeftEtcd is a control plane that was told to leave etcd: it has no data of it, and joins again after a reboot.
	LeftEtcd Kind = "left_etcd"
	// EtcdGoesBack is a control plane whose etcd was told to take its data back to the older version Wanted, by a run that
	// ended before all machines followed.
	EtcdGoesBack Kind = "etcd_goes_back"
	// NoNode is a machine without a node in Kubernetes.
	NoNode Kind = "no_node"
	// OwnedByAnother is a machine whose node has the mark of another resource.
	OwnedByAnother Kind = "owned_by_another"
	// MarkUnproven is a machine whose node has an owner mark, Found, that no key of the cluster authenticates.
	MarkUnproven Kind = "mark_unproven"
	// OthersWork is a control plane beside which those of other resources work.
	OthersWork Kind = "others_work"
	// NotOnHost is a container of which its host cluster has nothing.
	NotOnHost Kind = "not_on_host"
	// HostDiffers is an object of a container on its host cluster, Found, which is put right before the first step.
	HostDiffers Kind = "host"
	// HostReplaces is why, Found, the pod of a container is replaced.
	HostReplaces Kind = "host_replaces"
	// HostVolumesLost is a container whose volumes can never be used again.
	HostVolumesLost Kind = "host_volumes_lost"
	// HostStays is an object of a container, Found, that no apply puts right.
	HostStays Kind = "host_stays"
	// NotReady is why, Found, a machine is no working part of its cluster. An apply waits for it.
	NotReady Kind = "not_ready"
	// EtcdNotHealthy is a control plane whose etcd as a whole does not work, or has an alarm: Found.
	EtcdNotHealthy Kind = "etcd_not_healthy"
	// Former is a sentence, Found, of a state of before kinds, which only people read.
	Former Kind = "former"
)

// Difference is one thing in which a machine differs from what was applied last: a kind and its arguments.
type Difference struct {
	Kind      Kind                `json:"kind"`
	Place     *fieldpath.Place    `json:"place,omitempty"`
	Component kubenames.Component `json:"component,omitempty"`
	Keys      metakey.Keys        `json:"keys,omitempty"`
	Found     string              `json:"found,omitempty"`
	Wanted    string              `json:"wanted,omitempty"`
}

// Drift is how a machine differs from what was applied last. A refresh finds it out.
type Drift []Difference

// wholly are the kinds that one sentence says all of.
var wholly = map[Kind]string{
	Wiped:           "it waits in maintenance mode, without a configuration",
	Unproven:        "it waits in maintenance mode, and nothing proves that it is the machine that joined",
	NoMember:        "it has no member in etcd",
	LeftEtcd:        "it left etcd, and its etcd does not run",
	NoNode:          "it has no node in Kubernetes",
	OwnedByAnother:  "another resource, or another state, has marked its node as its own",
	OthersWork:      "control planes of other resources work",
	NotOnHost:       "the host cluster has neither a pod nor volumes of it",
	HostVolumesLost: "host cluster: its volumes can never be used again, and its data is lost",
}

// String is the difference for people.
func (d Difference) String() string {
	switch d.Kind {
	case AddressDiffers:
		return fmt.Sprintf("address: it answers at %s, not at %s", d.Found, d.Wanted)
	case TalosDiffers:
		return fmt.Sprintf("Talos: %s runs, not %s", d.Found, d.Wanted)
	case SchematicDiffers:
		return fmt.Sprintf("schematic: %s runs, not %s", step.ShortID(cmp.Or(d.Found, "none")), step.ShortID(d.Wanted))
	case ConfigurationDiffers:
		return "configuration: " + d.place()
	case ImageDiffers:
		return fmt.Sprintf("image of %s: %s, not %s", d.Component, cmp.Or(d.Found, "that of Talos"), d.Wanted)
	case RunsOther:
		return fmt.Sprintf("%s: %s runs, and its image is %s", d.Component, d.Found, d.Wanted)
	case MetaDiffers:
		return "META: not what `clusters` of the provider has: " + metakey.Texts(d.Keys)
	case EtcdGoesBack:
		return "etcd was told to take its data back to version " + d.Wanted
	case MarkUnproven:
		return fmt.Sprintf("the owner mark on its node is not authentic and does not count, it names %q", d.Found)
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

// place is where the configuration differs; in a state of before places a text, Found.
func (d Difference) place() string {
	if d.Place == nil {
		return d.Found
	}

	return d.Place.String()
}

// Lines is the drift for people.
func (d Drift) Lines() []string {
	var lines []string

	for _, difference := range d {
		lines = append(lines, difference.String())
	}

	return lines
}

// Has reports whether anything of a kind differs.
func (d Drift) Has(kind Kind) bool { return len(d.Of(kind)) > 0 }

// Of is the part of the drift that is of some kinds.
func (d Drift) Of(kinds ...Kind) Drift {
	return slices.DeleteFunc(slices.Clone(d), func(one Difference) bool { return !slices.Contains(kinds, one.Kind) })
}

// Without is the drift without what is of some kinds.
func (d Drift) Without(kinds ...Kind) Drift {
	return slices.DeleteFunc(slices.Clone(d), func(one Difference) bool { return slices.Contains(kinds, one.Kind) })
}

// First is the first difference of a kind, and the zero value without one.
func (d Drift) First(kind Kind) Difference {
	for _, difference := range d {
		if difference.Kind == kind {
			return difference
		}
	}

	return Difference{}
}

// OfHost are the kinds that the host cluster of a container tells.
var OfHost = []Kind{HostDiffers, HostReplaces, HostVolumesLost, HostStays}

// saysNotReady are the kinds that say by themselves that a machine is not ready.
var saysNotReady = []Kind{Wiped, Unproven, NoMember, LeftEtcd, NoNode, NotOnHost, HostVolumesLost, NotReady}

// SaysNotReady reports whether the drift says by itself that the machine is not ready.
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

// MetaKeys are those of META that differ.
func (d Drift) MetaKeys() []uint8 {
	var keys []uint8
	for _, difference := range d {
		keys = append(keys, difference.Keys...)
	}

	return keys
}
