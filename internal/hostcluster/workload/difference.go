package workload

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Ref names an object of the host.
type Ref struct{ Kind, Namespace, Name string }

// String returns a text such as "Service prod/dev-cp-0".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}

	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Cause is the problem of an object.
type Cause string

// The causes of differences.
const (
	// Missing objects do not exist, and Deleting ones are on their way out.
	Missing  Cause = "missing"
	Deleting Cause = "deleting"
	// Changed is that a field has another value than is wanted.
	Changed Cause = "changed"
	// Changing objects were written while they were compared.
	Changing Cause = "changing"
	// Refused means that the host refuses the wanted change of an object.
	Refused Cause = "refused"
	// Readdressed Services have an address, or a kind of it, that cannot be changed: they are recreated.
	Readdressed Cause = "readdressed"
	// Unwanted Services lead to where nothing should lead any more.
	Unwanted Cause = "unwanted"
	// Remeasured budgets have the other measure, beside which the host does not take the wanted one.
	Remeasured Cause = "remeasured"
	// Wiping is that the wiping of a machine has begun and is not finished.
	Wiping Cause = "wiping"
	// OtherTemplate pods were made from another template than their StatefulSet has now.
	OtherTemplate Cause = "other template"
	// Going claims were deleted, and stay until the pod that uses them is gone. Vanished ones are gone with their
	// data.
	Going    Cause = "going"
	Vanished Cause = "vanished"
	// VolumeLost and VolumeUnreachable claims have a volume that does not exist, or that is on a node that does not.
	VolumeLost        Cause = "volume lost"
	VolumeUnreachable Cause = "volume unreachable"
	// Smaller, OtherClass and OtherStorage are wanted of volumes, and can never be had.
	Smaller      Cause = "smaller"
	OtherClass   Cause = "other class"
	OtherStorage Cause = "other storage"
	// Unreadable is that the host's record of who set what cannot be read.
	Unreadable Cause = "unreadable"
)

// Difference is one way in which an object of the host is not as is wanted. What people read of it is String alone.
type Difference struct {
	Object Ref
	Cause  Cause
	// Path of a field, by its keys; one in brackets is an element of a list, by its name.
	Path []string
	// Before and After are the found and the wanted value, empty for a missing one.
	Before, After string
	// By are the clients that set the different fields, where known.
	By []string
	// Of is another subject of the cause: the name of a StatefulSet, of a volume, or of a machine.
	Of string
	// Reason is the host's reason.
	Reason string
}

func (k *Kind) ref(o metav1.Object) Ref { return k.refTo(o.GetNamespace(), o.GetName()) }

func (k *Kind) refTo(namespace, name string) Ref {
	if k.Cluster {
		namespace = ""
	}

	return Ref{Kind: k.name, Namespace: namespace, Name: name}
}

// fieldDifference is a difference of one field of an object. by names the clients that added fields.
func fieldDifference(of Ref, d objects.Difference, by []string) Difference {
	return Difference{Object: of, Cause: Changed, Path: d.Keys, Before: d.Found, After: d.Wanted, By: by}
}

// ofTemplate reports whether a difference is of the pod template of a StatefulSet: it takes effect with the next pod.
func (d Difference) ofTemplate() bool {
	return d.Object.Kind == SetKind.name && len(d.Path) > 1 && d.Path[0] == "spec" && d.Path[1] == "template"
}

// String is the difference on one line.
func (d Difference) String() string {
	by := strings.Join(d.By, ", ")

	switch d.Cause {
	case Missing:
		return d.Object.String() + " does not exist"
	case Deleting:
		return d.Object.String() + " is being deleted"
	case Changing:
		return d.Object.String() + " is changing"
	case Wiping:
		return d.Object.String() + ": the wipe of the machine is unfinished"
	case Changed:
		line := d.Object.String() + ": " +
			objects.Difference{Path: objects.PathOf(d.Path), Found: d.Before, Wanted: d.After}.String()
		if d.After == "" && by != "" {
			line += " (by " + by + ")"
		}

		return line
	case Refused:
		if by != "" {
			return fmt.Sprintf("%s: %s changed its template, and the host rejects reverting it: %s", d.Object, by, d.Reason)
		}

		return fmt.Sprintf("%s differs from the wanted state, and the host rejects the change: %s", d.Object, d.Reason)
	case Readdressed:
		return fmt.Sprintf("%s has another address or type (%s) and will be recreated", d.Object, d.Before)
	case Unwanted:
		return d.Object.String() + " exposes the cluster outside of the host and will be deleted"
	case Remeasured:
		return fmt.Sprintf("%s has minAvailable %s instead of maxUnavailable %s and will be recreated", d.Object, d.Before,
			d.After)
	case OtherTemplate:
		return fmt.Sprintf("%s was created from an outdated template of %s (revision %s instead of %s)", d.Object, d.Of,
			d.Before, d.After)
	case Unreadable:
		return d.Reason
	default:
		return d.ofVolume()
	}
}

// ofVolume is a difference of a machine's volumes on one line.
func (d Difference) ofVolume() string {
	switch d.Cause {
	case Going:
		return d.Object.String() + " was deleted, which cannot be undone, and its data is lost when its pod is replaced: " +
			"back up the data (of a control plane: etcd) first"
	case Vanished:
		return d.Object.String() + " no longer exists, and its data is lost"
	case VolumeLost:
		return fmt.Sprintf("%s is lost: its volume %s no longer exists", d.Object, d.Of)
	case VolumeUnreachable:
		return fmt.Sprintf("volume %s of %s is on a node that no longer exists", d.Of, d.Object)
	case Smaller:
		return fmt.Sprintf("%s has %s, but %s is configured: volumes cannot shrink; set the size to %s, or remove "+
			"machine %s and add another", d.Object, d.Before, d.After, d.Before, d.Of)
	case OtherClass:
		return fmt.Sprintf("%s has storage class %q, but %q is configured: the class of a claim cannot change; set it "+
			"back to %q, or remove machine %s and add another", d.Object, d.Before, d.After, d.Before, d.Of)
	case OtherStorage:
		if d.After == ephemeralStorage {
			return fmt.Sprintf("%s stores the machine's data in claims, but ephemeral storage is configured: the data would be "+
				"lost; remove machine %s and add another, or keep the claims", d.Object, d.Of)
		}

		return fmt.Sprintf("%s stores the machine's data in its pod, but claims are configured, which would be empty; "+
			"remove machine %s and add another, or keep ephemeral storage", d.Object, d.Of)
	default:
		return d.Object.String() + ": " + string(d.Cause)
	}
}

// Where a machine's data is.
const (
	ephemeralStorage = "ephemeral"
	claimedStorage   = "claims"
)

// Lines are differences as text.
func Lines(differences []Difference) []string {
	lines := make([]string, 0, len(differences))
	for _, d := range differences {
		lines = append(lines, d.String())
	}

	return slices.Clip(lines)
}
