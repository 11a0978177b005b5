// Package provider is the Terraform side of talosop: schemas, models, plan-time checks and diagnostics. It
// translates and decides nothing about clusters:
//
//	configuration ──> model ──> machineset.Set ──> cluster.Spec ──> lifecycle.Runner
//	state         <── model <── cluster.Snapshot <─────────────────────┘
//
// A set (internal/machineset) is what talosop_cluster, talosop_control_plane, talosop_worker and talosop_machine
// have in common: machines of one cluster, in groups that share role and settings, with the inputs of their
// configuration. talosop_cluster has a group for each of its blocks. The others have one group, in talosop_machine
// of one machine. machinesResource has all operations on sets; the models contain what differs between the
// resources. The cluster handle carries the facts of the cluster between resources. A worker needs only the handle
// to render the same configuration as a single resource for the whole cluster.
//
// Three rules hold everywhere. State is built from the plan and from observations, never from the configuration. A
// plan is computed from configuration and state alone, so that a second plan is the same. Registries and the cluster
// are only asked for reasons against another Kubernetes version. Read never removes what it could not reach.
//
// Backups have no set of machines. A place describes where backups are, with the same attributes everywhere
// (store_schema.go), and internal/backup does the work. Keys of buckets are write-only, so neither Read nor Delete
// has them. A plan that has a key reads the store in place of Read, and only when it has nothing else to change.
package provider
