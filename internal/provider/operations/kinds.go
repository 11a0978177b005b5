// Package operations is one-time operations on running machines: reboots, restarts, a rollback of Talos, a
// defragmentation of etcd, a support bundle. Each is an action, for Terraform 1.14 and newer, and a resource of the
// same name, for OpenTofu. The resource runs the operation when it is created and whenever its triggers change.
package operations

import (
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// kind is one of the operations.
type kind struct {
	// name is the type without the name of the provider.
	name string
	kind operation.Kind
	// description is what the operation does, and machines the default targets; empty when they have to be named.
	description, machines string
	// planes reports whether only control planes may be named, and single whether the default is one of them.
	planes, single bool
}

const careful = ", with a drain before each reboot and an uncordon once the machine works again. Control planes go " +
	"one at a time, the etcd leader last, while all others work and etcd keeps quorum; then workers."

const everyNode = "all machines of the cluster that are Kubernetes nodes"

// kinds are all operations.
var kinds = []kind{
	{name: "machine_reboot", kind: operation.Reboot, description: "Reboots machines" + careful},
	{name: "rolling_restart", kind: operation.Reboot, machines: everyNode,
		description: "Reboots the machines of a cluster" + careful},
	{name: "machine_rollback", kind: operation.Rollback,
		description: "Reboots machines into the Talos version from before their last upgrade, with the drain and order " +
			"of `talosop_machine_reboot`; a second rollback returns to the newer one. The next apply upgrades them to " +
			"`talos_version` of their resource, so change that as well."},
	{name: "machine_reset", kind: operation.Reset,
		description: "Wipes `EPHEMERAL`, or other volumes and disks, of metal machines and reboots them with their " +
			"configuration, with the drain and order of `talosop_machine_reboot`. A control plane that loses the data of " +
			"etcd leaves etcd first and joins again."},
	{name: "etcd_defragment", kind: operation.Defragment, machines: "all control planes", planes: true,
		description: "Releases disk space that the etcd database no longer uses. A member does not answer meanwhile, so " +
			"members are defragmented one at a time, the leader last, while all others work."},
	{name: "service_restart", kind: operation.RestartService, machines: everyNode,
		description: "Restarts a Talos service, one machine at a time, while pods keep running. Talos allows restarts of " +
			"the kubelet and the services of system extensions only."},
	{name: "bootstrap_manifests_sync", kind: operation.SyncManifests, planes: true, single: true,
		description: "Applies the bootstrap manifests of the control planes (such as kube-proxy, CoreDNS and Flannel) to " +
			"the cluster, as `talosctl upgrade-k8s` does; Talos itself only adds missing objects. Waits until their " +
			"workloads are rolled out."},
	{name: leaveName, kind: operation.Leave,
		description: "Takes a machine out of its cluster before its VM is destroyed: drain, leave etcd, reset or " +
			"shut down, delete the node. A dead machine is removed through the others, one that " +
			"already left stays as it is, and the last control plane is refused."},
	{name: "support_bundle", kind: operation.Collect,
		machines: "the control planes, and the workers that are Kubernetes nodes",
		description: "Writes a file for bug reports, as `talosctl support` does but without secrets: machine logs, " +
			"resources, redacted configurations, and nodes and pods of `kube-system`. A source that does not answer is a " +
			"warning, and the file lists it."},
}

// operationAction runs an operation when Terraform invokes it.
type operationAction struct {
	providerdata.ConfiguredAction

	kind kind
}

// NewActions are the constructors of the actions.
func NewActions() []func() action.Action {
	var constructors []func() action.Action

	for _, k := range kinds {
		constructors = append(constructors, func() action.Action { return &operationAction{kind: k} })
	}

	return constructors
}

// NewResources are the constructors of the resources.
func NewResources() []func() resource.Resource {
	var constructors []func() resource.Resource

	for _, k := range kinds {
		constructors = append(constructors, func() resource.Resource {
			if k.kind == operation.Leave {
				return &leaveResource{kind: k}
			}

			return &operationResource{kind: k}
		})
	}

	return constructors
}
