package kubernetes

import (
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
)

// The words of the packages below that users of a [Client] need.
type (
	// Options are those of a client.
	Options = api.Options
	// Limit is what a client sends beside reads.
	Limit = api.Limit
	// Kubeconfig says how to reach a cluster.
	Kubeconfig = api.Kubeconfig
	// Reference names an object.
	Reference = objects.Reference
	// Difference is a field of an object that is not what it should be.
	Difference = objects.Difference
	// LockOptions are those of a lock.
	LockOptions = lock.Options
	// Lock is the right to disrupt machines.
	Lock = lock.Lock
	// Obstacles are what an upgrade would meet.
	Obstacles = upgrade.Obstacles
	// RemovedSetting is a setting that an upgrade removes.
	RemovedSetting = upgrade.RemovedSetting
)

// DefaultLockDuration is [lock.DefaultDuration].
const DefaultLockDuration = lock.DefaultDuration

// See the packages below.
var (
	ErrNoAnswer    = api.ErrNoAnswer
	ErrBeyondLimit = api.ErrBeyondLimit
	Authenticate   = api.Authenticate
	ReferenceTo    = objects.ReferenceTo
	Differences    = objects.Differences
	PathOf         = objects.PathOf
	LastEvent      = diagnose.Last
)
