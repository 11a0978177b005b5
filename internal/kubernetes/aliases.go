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
	Options        = api.Options
	Kubeconfig     = api.Kubeconfig
	Reference      = objects.Reference
	Difference     = objects.Difference
	LockOptions    = lock.Options
	Lock           = lock.Lock
	Obstacles      = upgrade.Obstacles
	RemovedSetting = upgrade.RemovedSetting
)

// DefaultLockDuration is [lock.DefaultDuration].
const DefaultLockDuration = lock.DefaultDuration

// See the packages below.
var (
	ErrNoAnswer  = api.ErrNoAnswer
	Authenticate = api.Authenticate
	ReferenceTo  = objects.ReferenceTo
	Differences  = objects.Differences
	PathOf       = objects.PathOf
	LastEvent    = diagnose.Last
)
