package machineset

// Addresses and names of machines.
var (
	duplicateMachine = Messages.Invalid("duplicate_machine",
		"Found {{quote .value}}, which belongs to {{.other}}.",
		"Allowed: each machine once.",
		"Remove one of the machines, or correct the value.")

	invalidAddress = Messages.Invalid("invalid_address",
		"Found {{quote .value}}.",
		"Allowed: an IP address or a hostname, with or without a port, without a scheme.",
		"{{.fix}}")

	addressInNetwork = Messages.Invalid("address_in_network",
		"Found {{.address}}, which is in the {{.network}} network {{.prefix}}.",
		"Allowed: an address outside of the pod and service networks, because Talos uses no other address for a machine.",
		"Give the machine another address. Or give the cluster another network before you create it.")

	addressIsVirtual = Messages.Invalid("address_is_virtual",
		"Found {{.address}}, which is the virtual IP of the control planes.",
		"Allowed: an address that only this machine has.",
		"Use the machine's own address.")

	endpointOfMachine = Messages.Invalid("endpoint_of_machine",
		"Found {{quote .endpoint}}, which is the address of this machine.",
		"Allowed: an address that answers before this machine joins. The resource of the cluster waits for its Kubernetes "+
			"API there, and this machine waits for that resource.",
		"Use an address that the control planes share (virtual IP or load balancer), or the address of a control plane in "+
			"the other resource.")

	invalidHostname = Messages.Invalid("invalid_hostname",
		"Found {{quote .value}} from the name of the machine, because it has no `hostname`.",
		"Allowed: lowercase letters, digits and dashes, at most 63 of them, with or without a domain.",
		"Set `hostname`, or give the machine such a name.")

	throughOnControlPlane = Messages.Invalid("through_on_control_plane",
		"Found \"through_control_plane\" on a control plane.",
		"Allowed: `direct`, the default. Control planes forward calls, so talosop must reach them.",
		"Omit `access`, or set it on workers.")

	throughWithEndpoint = Messages.Invalid("through_with_endpoint",
		"Found \"through_control_plane\" together with {{.endpoint}}, where Terraform would connect to the machine itself.",
		"Allowed: one of the two. Control planes connect to port 50000 of `address`, and only they do.",
		"Remove `talos_endpoint`, and the port in `address`.")

	throughWithoutControlPlane = Messages.Invalid("through_without_control_plane",
		"Found \"through_control_plane\", but no control plane is known.",
		"Allowed: this access if `talos_endpoints` of `cluster` lists control planes.",
		"Add the addresses of the control planes there.")

	linkUnknown = Messages.Error("link_unknown",
		"Link of the virtual IP of {{brief .machines}} is unknown",
		"Found no `link` for the virtual IP, and state does not have the link with the address of {{.machines}}.",
		"Allowed: no `link` after a refresh that reached {{plural .machines \"the machine\" \"these machines\"}}.",
		"Refresh while {{plural .machines \"the machine answers\" \"the machines answer\"}}, or set `link`.")
)

// Images and settings.
var (
	unknownPlatform = Messages.Invalid("unknown_platform",
		"Found {{quote .value}}.",
		"Allowed: the platform names of Talos, such as `metal`, `nocloud` or `aws`.",
		"Omit `platform` for physical machines and most virtual machines.")

	invalidSchematicID = Messages.Invalid("invalid_schematic_id",
		"Found {{quote .value}}.",
		"Allowed: an ID from the Image Factory, which has 64 lowercase hexadecimal digits.",
		"Upload the schematic to the Image Factory and copy its ID, or use the content of the schematic.")

	invalidSchematic = Messages.Invalid("invalid_schematic_content",
		"Found {{.problem}}.",
		"Allowed: the content of a schematic in the form of the Image Factory, or its ID.",
		"Write YAML with `customization`, for example with `officialExtensions` below `systemExtensions`.")

	talosUntested = Messages.Warning("talos_untested",
		"Talos {{.version}} is newer than this provider supports: {{.at}}",
		"This version of the provider knows Talos up to {{.newest}}. It treats {{.version}} as {{.newest}}.",
		"Read the release notes of Talos, and use a newer release of the provider when there is one.")

	settingIgnored = Messages.Warning("setting_ignored",
		"Setting has no effect: {{.at}}",
		"Found {{.found}}.",
		"{{.reason}}",
		"{{.fix}}")

	resetUnknownVolume = Messages.Invalid("reset_volume_unknown",
		"Found {{.volumes}}.",
		"Allowed: `STATE`, `EPHEMERAL`, `META`, `SYSTEM_DISK` alone, and volumes of the machine configuration by their "+
			"IDs{{if .has}}: {{.has}}{{else}}, of which this one has none{{end}}.",
		"Whole disks beside the system disk belong in `user_disks`.")

	resetDiskAndVolumes = Messages.Invalid("reset_disk_and_volumes",
		"Found `SYSTEM_DISK` with volumes.",
		"Allowed: `SYSTEM_DISK` alone, or only volumes.",
		"The whole system disk includes its volumes, so name nothing else.")

	resetKeepsState = Messages.Invalid("reset_keeps_state",
		"Found {{.volumes}}, without `STATE`.",
		"With its configuration on `STATE`, a machine that left its cluster joins it again.",
		"Add `STATE`. To wipe volumes of a machine that stays in its cluster, use `talosop_machine_reset`.")

	resetKeepsEtcd = Messages.Invalid("reset_keeps_etcd",
		"Found {{.volumes}}, without `EPHEMERAL`.",
		"A control plane keeps the data of its former etcd member on `EPHEMERAL`, and can never join or bootstrap an etcd "+
			"with it.",
		"Add `EPHEMERAL`.")

	lastLeavesNothing = Messages.Invalid("reset_of_the_last_graceful",
		"Found true for {{.machine}}, the only control plane.",
		"The last etcd member cannot leave etcd, and its pods have no other node.",
		"Remove `graceful`, or set it to false.")

	resetStaysOff = Messages.Invalid("reset_stays_off",
		"Found false for {{.machines}}, which the plan resets and creates again.",
		"A machine that is off does not answer the create.",
		"Set `reboot = true` and apply. Then replace the resource.")
)
