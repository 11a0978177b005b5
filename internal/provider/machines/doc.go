// Package machines is the resources that create machines: talosop_cluster, talosop_control_plane, talosop_worker and
// talosop_machine.
package machines
