package machineset

// What a refresh observes.
var (
	machinesUnreachable = Messages.Warning("machines_unreachable",
		"Machines of cluster {{.cluster}} do not answer: {{brief .machines}}",
		"No answer from these machines:{{bullets .reasons}}",
		"State keeps what was last read from them, because silence does not mean that they are gone.",
		"{{if .awaited}}The next apply waits until {{.awaited}} {{plural .awaited \"answers\" \"answer\"}}, for at most "+
			"`timeouts.update`, and fails otherwise. Remove machines that are gone for good from the configuration.{{end}}")

	identityMismatch = Messages.Warning("identity_mismatch",
		"Unexpected identity of machines of cluster {{.cluster}}: {{brief .machines}}",
		"Other machines than the expected ones answer at these addresses:{{bullets .reasons}}",
		"State keeps what was last read from the expected machines, and nothing is sent to these addresses.",
		"Correct the addresses. If you replaced the hardware of a machine on purpose, set its `uuid` to the new one.")

	volumesLost = Messages.Warning("volumes_lost",
		"Volumes of machines of cluster {{.cluster}} are lost: {{brief .machines}}",
		"The host cluster can never use the volumes of these machines again:{{bullets .reasons}}",
		"The next apply gives them new volumes, one machine at a time and as far as etcd does not need the lost data. "+
			"The machines then join the cluster again.")

	machinesGone = Messages.Warning("machines_gone",
		"Machines are gone from the host cluster: {{brief .machines}}",
		"State has {{.machines}}, but the host cluster{{if .host}} of {{.host}}{{end}} has no StatefulSet, pod or volumes "+
			"of {{plural .machines \"it\" \"them\"}}.",
		"An apply recreates {{plural .machines \"it\" \"them\"}} without data. First make sure that nothing is about to "+
			"restore {{plural .machines \"it\" \"them\"}}.")

	machinesRecreated = Messages.Warning("machines_recreated",
		"Machines were gone from the host cluster: {{brief .machines}}",
		"State had {{.machines}}, but the host cluster{{if .host}} of {{.host}}{{end}} had no StatefulSet, pod or volumes "+
			"of {{plural .machines \"it\" \"them\"}}.",
		"This apply recreates {{plural .machines \"it\" \"them\"}} without data.")

	machinesGoneBefore = Messages.Warning("machines_gone_before",
		"Machines were already gone from the host cluster: {{brief .machines}}",
		"State had {{.machines}}, but the host cluster{{if .host}} of {{.host}}{{end}} had no StatefulSet, pod or volumes "+
			"of {{plural .machines \"it\" \"them\"}} to remove.")

	clusterUnhealthy = Messages.Warning("cluster_unhealthy",
		"Cluster {{.cluster}} is not healthy{{if .machines}}: {{brief .machines}}{{end}}",
		"These problems were observed:{{bullets .problems}}",
		"The next apply waits until they are solved, for at most `timeouts.update`, and fails otherwise.",
		"Remove machines that are gone for good from the configuration.")

	machinesDrifted = Messages.Warning("machines_drifted",
		"Machines differ from the last apply: {{brief .machines}}",
		"These differences were observed:{{bullets .differences}}",
		"The next apply restores what is configured, and `operations` of the plan lists the steps. To keep a difference, "+
			"add it to the configuration.")

	nodesCordoned = Messages.Warning("nodes_cordoned",
		"Nodes of cluster {{.cluster}} are cordoned: {{brief .machines}}",
		"Another user or tool cordoned these nodes, so they get no new pods:{{bullets .nodes}}",
		"talosop does not change that. To use a node again, run `kubectl uncordon`.")

	etcdMembersUnlisted = Messages.Warning("etcd_members_unlisted",
		"etcd of cluster {{.cluster}} has members that are not listed here",
		"These members belong to no machine of this resource:{{bullets .members}}",
		"They count for the majority of etcd, and this resource does not change them. This is normal for control planes of "+
			"other resources, such as `talosop_machine`, or of other tools.",
		"If the machine of a member is gone for good, make sure that nothing else owns it. Then remove the member with "+
			"`talosctl etcd remove-member`.")

	secureBootOff = Messages.Warning("secure_boot_off",
		"Secure Boot is off: {{brief .machines}}",
		"`secure_boot` is true, but the firmware of {{.machines}} does not verify what it starts.",
		"Put the firmware into setup mode. Boot the medium that is signed for Secure Boot, which enrolls the keys, and "+
			"switch Secure Boot on. Or remove `secure_boot`.")

	secureBootOn = Messages.Warning("secure_boot_on",
		"Secure Boot is on: {{brief .machines}}",
		"The firmware of {{.machines}} verifies what it starts, but the installer image is not signed for Secure Boot. "+
			"After the next Talos upgrade, {{plural .machines \"the machine\" \"the machines\"}} would not boot.",
		"Set `secure_boot = true` before the upgrade, or switch Secure Boot off in the firmware.")

	nodesNotInState = Messages.Warning("nodes_not_in_state",
		"Nodes of this resource are not in its state: {{brief .names}}",
		"These nodes have the mark of this resource, but state has no machines for them:{{bullets .nodes}}",
		"An apply that was killed configured them, and they stay in the cluster.",
		"To keep a node, add its machine to this resource and apply. To remove a node, add its machine and apply, and then "+
			"remove the machine again, which resets it.")

	nodesJoined = Messages.Warning("nodes_joined",
		"New nodes of cluster {{.cluster}} belong to no resource: {{brief .names}}",
		"These nodes joined after state was last written:{{bullets .nodes}}",
		"This is normal for machines of an autoscaler or an instance group. They can also come from an apply that was "+
			"killed.",
		"To keep such a node, add its machine to a resource and apply. To remove it, add its machine and apply, and then "+
			"remove the machine again, which resets it.")

	endpointSilent = Messages.Warning("endpoint_silent",
		"Kubernetes endpoint of cluster {{.cluster}} does not answer",
		"Endpoint {{.endpoint}} does not answer: {{.problem}}. The control planes answer at their own addresses.",
		endpointEffect, endpointCheck, endpointElsewhere)

	endpointFailed = Messages.Error("endpoint_failed",
		"Unable to confirm the Kubernetes endpoint of cluster {{.cluster}}",
		"The machines became Ready as planned, but endpoint {{.endpoint}} does not answer: {{.problem}}. The control planes "+
			"answer at their own addresses.",
		endpointEffect, endpointCheck, endpointElsewhere)
)

// What follows from an endpoint that does not answer, and what to do.
const (
	endpointEffect = "Kubeconfigs use the endpoint and do not work from this computer. The phase is `Degraded`."
	endpointCheck  = "Make sure that the name of the endpoint resolves here, and that its certificate has that name. " +
		"Its load balancer or virtual IP must forward to port 6443 of the control planes. Then apply again."
	endpointElsewhere = "If only this computer cannot reach the endpoint, add it to `unreachable_endpoints` of the " +
		"provider."
)
