package step

import "slices"

// BeginsEtcd reports whether a step makes a control plane the first member of a new etcd.
func BeginsEtcd(step Step) bool {
	switch step.(type) {
	case Bootstrap, Restore:
		return true
	default:
		return false
	}
}

// Restores reports whether any of the steps restores etcd.
func Restores(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { _, is := s.(Restore); return is })
}

// Disruptive steps take a machine out of service. Between runs and resources they happen under one lock.
func Disruptive(s Step) bool {
	switch s := s.(type) {
	case Upgrade, LeaveEtcd, RemoveMember, ReplaceVolumes:
		return true
	case ApplyConfig:
		return s.Reboot != ""
	case Operate:
		return s.Reboots()
	case UpgradeComponent:
		return s.Node != ""
	case Reset:
		return s.Node != "" || s.Shared
	default:
		return false
	}
}

// OneByOne reports whether a step, although it takes nothing out of service, reaches the
// machines of a cluster one at a time, so that a mistake in it does not reach them all:
// another configuration of a control plane, another network in META. Within a resource
// the planner sees to that, between resources it is the lock of the disruptive steps.
func OneByOne(s Step) bool {
	switch s := s.(type) {
	case ApplyConfig:
		return s.Access == Member && s.Role == ControlPlane
	case WriteMeta:
		return s.ChangesNetwork()
	case UpgradeComponent:
		return s.Role == ControlPlane
	case SyncManifests, DowngradeEtcd, CancelEtcdDowngrade, Operate:
		return true
	default:
		return false
	}
}
