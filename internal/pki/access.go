package pki

import "time"

// Names in the certificates of clients.
const (
	// RoleAdmin may do everything at the Talos API.
	RoleAdmin = "os:admin"
	// RoleReader reads everything there that is not secret.
	RoleReader = "os:reader"
	// RoleBackup takes snapshots of etcd.
	RoleBackup = "os:etcd:backup"
	// GroupAdmin may do everything at the Kubernetes API.
	GroupAdmin = "system:masters"
)

// OperationLifetime is how long the credentials of an operation last, unless its timeout is longer.
const OperationLifetime = 15 * time.Minute

// Access is what one kind of operation needs of a cluster: credentials that are made for it have these roles and
// rights, and no others.
type Access struct {
	// Operation is the name of the operation in the guide to credentials.
	Operation string
	// Talos are the roles of its client of the Talos API, none where it asks no machine. Part has others for one part of
	// what it does.
	Talos []string
	Part  Part
	// Kubernetes is what its client of the Kubernetes API may do.
	Kubernetes KubernetesAccess
}

// Part is a part of an operation that needs other roles of Talos than the rest of it.
type Part struct {
	// Of is the purpose of the roles.
	Of    string
	Roles []string
}

// What parts of operations are for.
const (
	Configurations = "machine configurations"
	Snapshots      = "the snapshot"
)

// ForPart is what the part of an operation needs that the rest of it does not.
func (a Access) ForPart() Access {
	return Access{Operation: a.Operation, Talos: a.Part.Roles, Kubernetes: KubernetesAccess{None: true}}
}

// KubernetesAccess is what an operation may do at the Kubernetes API. Only the group system:masters has rights in
// every cluster. Rights of another group are objects of the cluster, which a plan must not make and another client
// may remove. Operations that do not change workloads have that group, too, and a client that sends only what they
// need.
type KubernetesAccess struct {
	// None means no client at all, and All no limit.
	None, All bool
	// Writes are the resources that are written in addition to reads. DryRuns is whether the API is asked what a
	// write would change, and Secrets whether Secrets are read.
	Writes  []string
	DryRuns bool
	Secrets bool
}

var (
	noKubernetes    = KubernetesAccess{None: true}
	allOfKubernetes = KubernetesAccess{All: true}
)

// The operations, each with what it needs. Of Talos, machine configurations and the settings of Kubernetes' components
// are for os:admin alone: resources that are sensitive (Talos 1.13, internal/app/resources/access.go/AccessPolicy).
// For its calls see internal/app/machined/pkg/system/services/machined.go/rules.
var (
	Observing = Access{
		Operation: "Refresh and plan of machines",
		Talos:     []string{RoleReader}, Part: Part{Configurations, []string{RoleAdmin}},
	}
	AskingOwners = Access{Operation: "Plan that removes machines: whose they are"}
	Checking     = Access{
		Operation: "Plan of an upgrade of Kubernetes: what obstructs it",
		Talos:     []string{RoleAdmin},
	}
	CheckingSecrets = Access{
		Operation: "`talosop_upgrade_checks`",
		Talos:     []string{RoleAdmin}, Kubernetes: KubernetesAccess{Secrets: true},
	}
	Examining = Access{
		Operation: "`talosop_cluster_health`, `talosop_etcd_members`",
		Talos:     []string{RoleReader},
	}
	Inspecting = Access{
		Operation: "`talosop_machine_info`; a list of machines",
		Talos:     []string{RoleReader}, Kubernetes: noKubernetes,
	}
	BackingUp = Access{
		Operation: "`talosop_etcd_backup` takes a snapshot",
		Talos:     []string{RoleReader}, Part: Part{Snapshots, []string{RoleBackup}},
		Kubernetes: KubernetesAccess{Writes: []string{"leases"}},
	}
	ReadingSchedule = Access{
		Operation:  "Refresh and plan of `talosop_etcd_backup_schedule`",
		Kubernetes: KubernetesAccess{Secrets: true, DryRuns: true},
	}
	ReadingAddons = Access{
		Operation:  "Refresh and plan of `talosop_addon`",
		Kubernetes: KubernetesAccess{Secrets: true, DryRuns: true},
	}
	ChangingObjects = Access{
		Operation:  "Apply and destroy of `talosop_addon`, `talosop_etcd_backup_schedule`",
		Kubernetes: allOfKubernetes,
	}
	Importing = Access{
		Operation: "Import of machines",
		Talos:     []string{RoleReader}, Part: Part{Configurations, []string{RoleAdmin}},
	}
	Collecting = Access{
		Operation: "`talosop_support_bundle`",
		Talos:     []string{RoleReader}, Part: Part{Configurations, []string{RoleAdmin}},
	}
	Operating = Access{
		Operation: "Operations, such as `talosop_machine_reboot`",
		Talos:     []string{RoleAdmin}, Kubernetes: allOfKubernetes,
	}
	Changing = Access{
		Operation: "Apply and destroy of machines",
		Talos:     []string{RoleAdmin}, Kubernetes: allOfKubernetes,
	}
)

// Accesses are all of them.
func Accesses() []Access {
	return []Access{
		Observing, AskingOwners, Checking, CheckingSecrets, Examining, Inspecting, BackingUp, ReadingSchedule, ReadingAddons,
		ChangingObjects, Importing, Collecting, Operating, Changing,
	}
}
