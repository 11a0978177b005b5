// Package provider is the Terraform side of talosop: schemas, models, plan-time
// checks and diagnostics. It translates and decides nothing about clusters:
//
//	configuration ──> model ──> machineset.Set ──> cluster.Spec ──> lifecycle.Runner
//	state         <── model <── cluster.Snapshot <─────────────────────┘
//
// A set (internal/machineset) is what talosop_cluster, talosop_control_plane, talosop_worker and
// talosop_machine have in common: machines of one cluster, in groups that share role and
// settings, with what their configuration is rendered from. talosop_cluster has a group
// for each of its blocks, the others have one, that of talosop_machine with one machine.
// All operations on sets are those of machinesResource; what differs between the
// resources is in their models. What the cluster is travels between resources in the cluster handle, so a
// worker needs nothing but the handle to render the same configuration that a
// single resource for the whole cluster would.
//
// Three rules hold everywhere. State is built from the plan and from what was
// observed, never from the configuration. A plan is computed from configuration
// and state alone, so that planning twice gives the same plan; registries and the cluster
// are only asked for reasons against another version of Kubernetes. Read never removes
// what it could not reach.
//
// What backs clusters up has no set of machines. A place says where backups are, in the same words
// wherever it is said (store_schema.go), and internal/backup does the work. Keys of buckets
// are write-only, so that neither Read nor Delete has them: a plan that has one looks at the
// store in place of Read, and only when it has nothing else to change.
package provider
