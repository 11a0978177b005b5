// Package operations is one-time operations on running machines: reboots, restarts, a rollback of Talos, a
// defragmentation of etcd, a support bundle. Each is an action, for Terraform 1.14 and newer, and a resource of the
// same name, for OpenTofu. The resource runs the operation when it is created and whenever its triggers change.
package operations

import (
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/operation"
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

const careful = ", each cordoned and drained first, and given back once it works again: control planes one at a " +
	"time, the leader of etcd last, and only while every other one works and etcd keeps its quorum; then workers."

const everyNode = "all machines of the cluster that Kubernetes has as nodes"

// kinds are all operations.
var kinds = []kind{
	{name: "machine_reboot", kind: operation.Reboot, description: "Reboots machines" + careful},
	{name: "rolling_restart", kind: operation.Reboot, machines: everyNode,
		description: "Reboots the machines of a cluster" + careful},
	{name: "machine_rollback", kind: operation.Rollback,
		description: "Makes machines start with the Talos that they had before their last upgrade, as carefully as " +
			"`talosop_machine_reboot`; a second rollback goes forward again. The next apply of the resource that has the " +
			"machines upgrades them to its `talos_version`: change that, too."},
	{name: "etcd_defragment", kind: operation.Defragment, machines: "all control planes", planes: true,
		description: "Gives back the disk space that the database of etcd does not use any more. A member answers nobody " +
			"meanwhile, so that one is defragmented at a time, the leader last, while all others work."},
	{name: "service_restart", kind: operation.RestartService, machines: everyNode,
		description: "Restarts a service of Talos, one machine after the other; pods go on. Talos lets the kubelet and the " +
			"services of system extensions be restarted, and no others."},
	{name: "bootstrap_manifests_sync", kind: operation.SyncManifests, planes: true, single: true,
		description: "Applies the bootstrap manifests that Talos renders from the configuration of the control planes, " +
			"such as those of kube-proxy, CoreDNS and Flannel, to the cluster, as `talosctl upgrade-k8s` does: Talos itself " +
			"only adds what is missing. Waits until their workloads are rolled out."},
	{name: "support_bundle", kind: operation.Collect,
		machines: "the control planes, and the workers that Kubernetes has as nodes",
		description: "Writes what a bug report needs to a file, as `talosctl support` does and without secrets: logs of " +
			"machines, their resources and redacted configurations, nodes and pods of `kube-system`. What does not answer " +
			"is a warning, and is named in the file."},
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
		constructors = append(constructors, func() resource.Resource { return &operationResource{kind: k} })
	}

	return constructors
}
