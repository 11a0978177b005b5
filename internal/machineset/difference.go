package machineset

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// DifferenceKind says what of a machine differs from what was applied last.
type DifferenceKind int

const (
	// DiffersOtherwise is all that plans do not ask for: the text says it.
	DiffersOtherwise DifferenceKind = iota
	// ConfigurationDiffers is a place of the machine configuration.
	ConfigurationDiffers
	// ImageDiffers is the image of a component of Kubernetes.
	ImageDiffers
	// MetaDiffers is values of META that are in the provider's configuration.
	MetaDiffers
	// Wiped is a machine that lost its configuration.
	Wiped
	// Unproven is a machine that waits in maintenance mode and does not prove to be the one that joined.
	Unproven
	// NoMember is a control plane without a member in etcd.
	NoMember
	// LeftEtcd is a control plane that was told to leave etcd: it has no data of it, and joins again after a reboot.
	LeftEtcd
	// EtcdGoesBack is a control plane whose etcd was told to take its data back to an older version, by a run that ended
	// before all machines followed.
	EtcdGoesBack
	// NoNode is a machine without a node in Kubernetes.
	NoNode
	// OwnedByAnother is a machine whose node has the mark of another resource.
	OwnedByAnother
	// MarkUnproven is a machine whose node has an owner mark that no key of the cluster authenticates.
	MarkUnproven
	// OthersWork is a control plane beside which those of other resources work.
	OthersWork
	// NotOnHost is a container of which its host cluster has nothing.
	NotOnHost
	// HostDiffers is an object of a container on its host cluster, which is put right before the first step.
	HostDiffers
	// HostVolumesLost is a container whose volumes can never be used again.
	HostVolumesLost
	// HostStays is an object of a container that no apply puts right.
	HostStays
	// NotReady is a machine that is no working part of its cluster, and that an apply waits for.
	NotReady
	// EtcdNotHealthy is a control plane whose etcd as a whole does not work, or has an alarm.
	EtcdNotHealthy
)

// Difference is one thing in which a machine differs from what was applied last.
type Difference struct {
	Kind DifferenceKind
	// Place is set where the configuration differs, unless state has it in a form of another build.
	Place *fieldpath.Place
	// Component is set where an image differs.
	Component kubenames.Component
	// Keys are set where META differs.
	Keys []uint8
	// Text is what else is told of it.
	Text string
}

// Drift is how a machine differs from what was applied last. A refresh finds it out.
type Drift []Difference

// State has drift as text without values; String and ReadDrift are the only ones that know how it is written.

// wholly are the kinds that one sentence says all of.
var wholly = map[DifferenceKind]string{
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

// beginnings are the texts that the other kinds begin with. None begins with another.
var beginnings = map[DifferenceKind]string{
	ConfigurationDiffers: "configuration: ",
	ImageDiffers:         "image of ",
	EtcdGoesBack:         "etcd was told to take its data back to version ",
	MetaDiffers:          "META: not what `clusters` of the provider has: ",
	HostDiffers:          "host cluster: ",
	HostStays:            "host cluster, left as it is: ",
	NotReady:             "not ready: ",
	EtcdNotHealthy:       "etcd is not healthy: ",
	MarkUnproven:         "the owner mark on its node is not authentic and does not count, it names ",
}

// String is the difference as state has it.
func (d Difference) String() string {
	switch {
	case wholly[d.Kind] != "":
		return wholly[d.Kind]
	case d.Kind == ImageDiffers:
		return beginnings[d.Kind] + string(d.Component) + ": " + d.Text
	case d.Kind == MetaDiffers:
		return beginnings[d.Kind] + metakey.Texts(d.Keys)
	case d.Place != nil:
		return beginnings[d.Kind] + d.Place.String()
	default:
		return beginnings[d.Kind] + d.Text
	}
}

// readDifference reads what String wrote.
func readDifference(text string) Difference {
	for kind, sentence := range wholly {
		if text == sentence {
			return Difference{Kind: kind}
		}
	}

	for kind, beginning := range beginnings {
		rest, begins := strings.CutPrefix(text, beginning)
		if !begins {
			continue
		}

		d := Difference{Kind: kind, Text: rest}

		switch kind {
		case ConfigurationDiffers:
			if place, err := fieldpath.ParsePlace(rest); err == nil {
				d.Place, d.Text = &place, ""
			}
		case ImageDiffers:
			component, images, _ := strings.Cut(rest, ": ")
			d.Component, d.Text = kubenames.Component(component), images
		case MetaDiffers:
			d.Keys, d.Text = metakey.Read(rest), ""
		default:
		}

		return d
	}

	return Difference{Text: text}
}

// ReadDrift reads what state has.
func ReadDrift(lines []string) Drift {
	var drift Drift

	for _, line := range lines {
		drift = append(drift, readDifference(line))
	}

	return drift
}

// Lines is the drift as state has it.
func (d Drift) Lines() []string {
	var lines []string

	for _, difference := range d {
		lines = append(lines, difference.String())
	}

	return lines
}

// Has reports whether anything of a kind differs.
func (d Drift) Has(kind DifferenceKind) bool {
	return slices.ContainsFunc(d, func(difference Difference) bool { return difference.Kind == kind })
}

// textOf is what is told of the first difference of a kind; empty without one.
func (d Drift) textOf(kind DifferenceKind) string {
	for _, difference := range d {
		if difference.Kind == kind {
			return difference.Text
		}
	}

	return ""
}

// WithoutHost is the drift without what the host cluster says of it.
func (d Drift) WithoutHost() Drift {
	return slices.DeleteFunc(slices.Clone(d), func(difference Difference) bool {
		return slices.Contains([]DifferenceKind{HostDiffers, HostVolumesLost, HostStays}, difference.Kind)
	})
}

// places are where the configuration differs.
func (d Drift) places() []fieldpath.Place {
	var places []fieldpath.Place

	for _, difference := range d {
		if difference.Place != nil {
			places = append(places, *difference.Place)
		}
	}

	return places
}

// metaKeys are those of META that differ.
func (d Drift) metaKeys() []uint8 {
	var keys []uint8
	for _, difference := range d {
		keys = append(keys, difference.Keys...)
	}

	return keys
}
