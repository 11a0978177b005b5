package machines

import "github.com/talosop/terraform-provider-talosop/internal/cluster"

// Machines and the mode of their cluster.
var (
	singleInContainers = Messages.Invalid("single_machine_in_containers",
		"Found a cluster of mode \"container\".",
		"Allowed: mode \"metal\" for `talosop_machine`, because talosop numbers machines in containers.",
		"Use `replicas` of `talosop_control_plane` or `talosop_worker`.")

	argumentsOfContainers = Messages.Error("arguments_of_containers",
		"Unsupported in mode \"metal\": {{.arguments}}",
		"Found {{.arguments}} in a cluster of mode \"metal\".",
		"{{plural .arguments \"This is\" \"These are\"}} for machines in containers.",
		"Remove {{plural .arguments \"it\" \"them\"}}, or create a cluster of mode \"container\".")

	argumentsOfMetal = Messages.Error("arguments_of_metal",
		"Unsupported in mode \"container\": {{.arguments}}",
		"Found {{.arguments}} in a cluster of mode \"container\".",
		"{{plural .arguments \"This is\" \"These are\"}} for physical and virtual machines. talosop creates containers, and "+
			"installs nothing in them.",
		"Remove {{plural .arguments \"it\" \"them\"}}. `replicas` sets the number of machines.")

	endpointMissing = Messages.Invalid("endpoint_missing",
		"Found none.",
		"Allowed: the URL of the Kubernetes API, at a load balancer, a virtual IP or a DNS name of the control planes. "+
			"A single control plane can use its own address.",
		"Set it, for example to https://10.0.0.10:6443.")

	hostMissing = Messages.Invalid("host_missing",
		"Found none.",
		"Allowed: the host cluster that runs the machines as pods.",
		"Set `host`, at least with `namespace`.")

	hostMissingInHandle = Messages.Invalid("host_missing_in_handle",
		"Found none in the handle of a cluster of mode \"container\".",
		"Allowed: the host cluster that runs the machines as pods.",
		"Use the handle that the resource of the control plane exports, or set `host` with its `namespace`.")
)

// Numbers, keys and addresses of machines.
var (
	machinesMissing = Messages.Invalid("machines_missing",
		"Found no machine.",
		"Allowed: one or more.",
		"Add each {{.role}} machine with a name of your choice.")

	addressMissing = Messages.Invalid("address_missing",
		"Found no `address` of {{.machines}}.",
		"Allowed: the IP address or the hostname of the Talos API of {{plural .machines \"the\" \"each\"}} machine.",
		"Set `address`.")

	replicasMissing = Messages.Invalid("replicas_missing",
		"Found none.",
		"Allowed: the number of machines, because talosop numbers machines in containers.",
		"Set `replicas`.")

	replicasZero = Messages.Invalid("replicas_zero",
		"Found 0.",
		"Allowed: one control plane or more, because they store the data of the cluster.",
		"Use 1, 3 or 5. To remove the cluster, destroy the resource.")

	evenNumber = Messages.Warning("control_planes_even",
		"Even number of control planes: {{.count}}",
		"Found {{.count}} control-plane machines.",
		"An even number tolerates no more failures than {{.fewer}}, because etcd needs a majority.",
		"Use 1, 3 or 5.")

	invalidReplica = Messages.Invalid("invalid_replica_number",
		"Found patches for {{quote .keys}}.",
		"Allowed: the numbers of the machines, from 0 on.",
		"Write \"0\" for the first machine.")

	replicaBeyond = Messages.Invalid("replica_number_too_large",
		"Found patches for {{plural .keys \"machine\" \"machines\"}} {{.keys}}.",
		"Allowed: numbers below {{.count}}, which is `replicas`.",
		"Remove the patches, or raise `replicas`.")

	bootstrapOnWorker = Messages.Invalid("bootstrap_on_worker",
		"Found true on a worker.",
		"Allowed: true on a control plane, where etcd runs.",
		"Remove it here, and set it on one machine whose `role` is `controlplane`.")
)

// addAllControlPlanes is what to do when a handle does not list a control plane.
const addAllControlPlanes = "Add the addresses of all control planes of the cluster, including this one."

// Control planes in a handle.
var (
	bootstrapNotListed = Messages.Invalid("bootstrap_not_listed",
		"Found no {{quote .address}}, which is the address of the control plane that bootstraps etcd.",
		"Allowed: all control planes, because each of them is asked for etcd data before a bootstrap.",
		addAllControlPlanes+" If the cluster already exists, omit `bootstrap`.")

	controlPlaneNotListed = Messages.Invalid("control_plane_not_listed",
		"Found no {{quote .address}}, which is the address of this control plane.",
		"Allowed: all control planes, because each of them is asked for etcd data before a bootstrap and before the etcd "+
			"is removed.",
		addAllControlPlanes)

	controlPlanesMissing = Messages.Invalid("control_planes_missing_in_handle",
		"Found no control plane.",
		"Allowed: all control planes, because the others are asked about etcd before one leaves.",
		addAllControlPlanes)
)

// Secrets, networks and state.
var (
	consentMissing = Messages.Error("bootstrap_needs_consent",
		"Bootstrap with existing secrets needs consent: cluster {{.cluster}}",
		"The secrets of cluster {{quote .cluster}} existed before this plan, state does not have the cluster, and no etcd "+
			"answers: {{.observed}}.",
		"A cluster with these secrets may be powered off. A bootstrap would create a second one with the same certificate "+
			"authorities.",
		cluster.ConsentRemedy+".")

	otherSecrets = Messages.Error("secrets_do_not_match",
		"Secrets do not match cluster {{.cluster}}",
		"The secrets in the configuration are not those with which the machines of cluster {{quote .cluster}} were last "+
			"read.",
		"Machines trust only their own secrets.",
		"Use the secrets that the provider had, with the rotated keys in `rotated`.")

	secretsMoveWithReplacement = Messages.Error("secrets_move_with_replacement",
		"Unsupported move of the secrets of cluster {{.cluster}}",
		"The secrets were moved from the provider to the resource, and the same plan replaces the resource.",
		"The removal of the machines uses the former state, which has no secrets.",
		"Apply the move of the secrets first. Then replace the resource.")

	networksChanged = Messages.Error("networks_changed",
		"Unsupported change of the networks of cluster {{.cluster}}",
		"Patches in the provider configuration change the pod networks, the service networks or the DNS domain of the "+
			"cluster.",
		"Kubernetes cannot change them while the cluster runs.",
		"Undo the change, or create another cluster.")

	recordUnreadable = Messages.Error("record_unreadable",
		"Unable to read {{.at}} in state",
		"The attribute cannot be read: {{.cause}}.",
		"Only talosop may write it. Restore the state from before it was changed.")
)
