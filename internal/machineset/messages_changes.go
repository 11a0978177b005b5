package machineset

// What a change of a machine or a pool cannot do.
var (
	machineRoleChange = Messages.Error("machine_role_change",
		"Unsupported exchange of machine {{.machine}}",
		"{{.machine}} has the address or the hardware of {{.former}} ({{.role}} {{.address}}), which is no longer in the "+
			"configuration.",
		"Talos cannot change the role of a machine in place, and a name in use cannot move to another machine in the same "+
			"apply.",
		"First remove {{.former}} and apply, which resets it. Then add the machine again.")

	addressOfOther = Messages.Error("address_of_other_machine",
		"{{plural .machines \"Address of another machine\" \"Addresses of other machines\"}}: {{brief .machines}}",
		"The configuration has {{plural .machines \"an address\" \"addresses\"}} where another machine answered when the "+
			"machines were last read:{{bullets .places}}",
		"Nothing can be sent to {{.machines}} at {{plural .machines \"this address\" \"these addresses\"}}.",
		"Correct the {{plural .machines \"address\" \"addresses\"}}. If machines changed their addresses, plan again with a "+
			"refresh once they answer at the new ones.",
		"To rename a machine, change its key.")

	uuidOfOther = Messages.Error("uuid_of_other_machine",
		"{{plural .machines \"UUID of another machine\" \"UUIDs of other machines\"}}: {{brief .machines}}",
		"The configuration has {{plural .machines \"a `uuid`\" \"`uuid` values\"}} that another machine reported when the "+
			"machines were last read:{{bullets .places}}",
		"Remove one machine of each pair, or correct the `uuid`.")

	noControlPlaneLeft = Messages.Error("no_control_plane_left",
		"Unsupported removal of control planes of cluster {{.cluster}}",
		"{{.machines}} would leave, and the cluster has no other known control plane. The etcd data would be lost with the "+
			"last one.",
		"Keep {{.first}} and apply, so that other control planes join. Then remove it.",
		"To give up the cluster, destroy the resource.")

	etcdMajorityLost = Messages.Error("etcd_majority_lost",
		"Unsupported removal of control planes of cluster {{.cluster}}",
		"Of {{.count}} etcd members, those of {{.machines}} are gone with their data. Less than a majority is left.",
		"Only a majority can add and remove members.",
		"Replace one control plane at a time: put the other machines back and apply, then continue with the next one.",
		"If a majority is lost for good, restore etcd from a snapshot.")

	volumeChange = Messages.Error("volume_change",
		"Unsupported change of volume {{.document}}",
		"On {{.machines}}, {{.document}} cannot change: {{.what}}.",
		"{{.why}}",
		"Undo the change, or reinstall the machines with it, one at a time. To do so, remove a machine and apply, which "+
			"drains, resets and wipes it.",
		"Then add it again with the change in its own `system_volumes` or patch. The guide on disks has the steps.")
)

// otherStorage is what to do to get the storage of a refused change.
const otherStorage = "To use other storage, create another pool of workers with it, or replace the resource."

// Storage of machines in containers.
var (
	storageToVolumes = Messages.Error("storage_to_volumes",
		"Unsupported change of {{.at}}",
		"{{.machines}} {{plural .machines \"keeps its\" \"keep their\"}} data in pods, and volumes are configured. "+
			"The volumes would be empty.",
		"Set `ephemeral = true`.",
		otherStorage)

	storageToPods = Messages.Error("storage_to_pods",
		"Unsupported change of {{.at}}",
		"{{.machines}} {{plural .machines \"keeps its\" \"keep their\"}} data in volumes, and `ephemeral` is true. "+
			"The data would be lost.",
		"Set `ephemeral = false`.",
		otherStorage)

	storageClassChange = Messages.Error("storage_class_change",
		"Unsupported change of {{.at}}",
		"{{.machines}} {{plural .machines \"has\" \"have\"}} volumes of "+
			"{{if .before}}class {{quote .before}}{{else}}the default class of the host cluster{{end}}. "+
			"The configuration has {{if .now}}class {{quote .now}}{{else}}the default class of the host cluster{{end}}.",
		"A volume cannot change its class.",
		"{{if .before}}Set `class` to {{quote .before}}.{{else}}Omit `class`, because state does not have the name of the "+
			"current class. Without it, volumes keep their class.{{end}}",
		otherStorage)

	storageShrinks = Messages.Error("storage_shrinks",
		"Unsupported change of {{.at}}",
		"{{.machines}} {{plural .machines \"has\" \"have\"}} volumes of {{.before}}, and {{.now}} is configured. "+
			"Volumes cannot shrink.",
		"Set `{{.volume}}` to {{quote .before}}.",
		otherStorage)
)

// talosChange is the summary of a refused change of the Talos version.
const talosChange = "Unsupported change of {{.at}} from {{.from}} to {{.to}}"

// Talos versions.
var (
	talosInContainer = Messages.Error("talos_in_container", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}} in a container, and {{.to}} is configured. "+
			"In a container, Talos has no disk for another version.",
		"Start the container from another image. Or keep `talos_version` at {{.from}}, without a schematic.")

	talosOlderThanContract = Messages.Error("talos_older_than_contract", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is {{.to}}. "+
			"The configurations of the cluster follow version contract {{.contract}}, whose documents an older Talos refuses.",
		"Keep `talos_version` at {{.contract}}.0 or newer.")

	talosDowngrade = Messages.Error("talos_downgrade", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is the older {{.to}}. "+
			"An older Talos may not read the configuration or the data of a newer one.",
		"Set `talos_version` to {{.from}}. To downgrade on purpose, set `allow_downgrade = true`.")

	talosLosesEtcd = Messages.Error("talos_loses_etcd", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is the older {{.to}}. "+
			"The etcd of the older Talos does not read the data of the newer one.",
		"Keep {{.from}} on the control plane. Or recreate the cluster and restore an etcd snapshot that the older Talos "+
			"took.")

	talosEtcdStep = Messages.Error("talos_etcd_step", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is the older {{.to}}. "+
			"etcd is downgraded with the first minor version of Talos, and no installer of {{.to}} replaces {{.from}}.",
		"Downgrade to {{.next}} first. Downgrade further after that apply.")

	talosInstallerRefuses = Messages.Error("talos_installer_refuses", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is {{.to}}. "+
			"The installer of Talos {{.next}} refuses the upgrade: {{.problem}}.",
		"Name other releases in `upgrade_via`. Or upgrade the machines to a version in between with `talosctl upgrade`.")

	talosWithoutKubernetes = Messages.Error("talos_without_kubernetes", talosChange,
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} Talos {{.from}}, and `talos_version` is {{.to}}. "+
			"Talos {{.next}} on the upgrade path does not run Kubernetes {{.kubernetes}}.",
		"Allowed: {{.problem}}.",
		"{{.fix}}")

	etcdImageTooNew = Messages.Error("etcd_image_too_new",
		"Unsupported etcd image of {{brief .machines}}",
		"The configuration of {{.machines}} has an image of etcd {{.etcd}}. Talos {{.talos}} starts etcd with arguments "+
			"that this version no longer has.",
		"Remove `cluster.etcd.image` from the patches, so that Talos runs its own etcd {{.own}}.")

	etcdImageTooOld = Messages.Error("etcd_image_too_old",
		"Unsupported etcd image of {{brief .machines}}",
		"The configuration of {{.machines}} has an image of etcd {{.etcd}}. Talos {{.talos}} starts etcd with arguments "+
			"that this version does not have yet.",
		"Remove `cluster.etcd.image` from the patches, so that Talos runs its own etcd {{.own}}.")

	etcdImageDowngrade = Messages.Error("etcd_image_downgrade",
		"Unsupported etcd image of {{brief .machines}}",
		"The configuration of {{.machines}} has an image of etcd {{.etcd}}. etcd {{.running}} runs, and an older version "+
			"does not read its data. With the image, it would start before the data is downgraded.",
		"Remove `cluster.etcd.image` from the patches. Talos then downgrades etcd.")
)

// Kubernetes versions.
var (
	kubernetesChange = Messages.Error("kubernetes_change",
		"Unsupported change of kubernetes_version in cluster {{.cluster}}",
		"Kubernetes {{.lowest}} runs{{if .highest}}, and {{.highest}} in parts of the cluster{{end}}. "+
			"`kubernetes_version` is {{.found}}.",
		"Allowed: {{.allowed}}.",
		"{{.fix}}",
		"{{if .finish}}Set `kubernetes_version` to {{.finish}} to finish the upgrade, or to {{.keep}} to undo it."+
			"{{else if .keep}}Set `kubernetes_version` to {{.keep}} to keep the running version.{{end}}")

	settingTooNew = Messages.Error("setting_too_new",
		"Kubernetes {{.running}} of cluster {{.cluster}} does not have the {{.setting}}",
		"The configuration of {{.machines}} has it, and this apply also upgrades Kubernetes to {{.to}}. The configuration "+
			"changes before the upgrade, and kube-apiserver {{.running}} does not start with it.",
		"Allowed: it with Kubernetes {{.versions}}.",
		"Upgrade Kubernetes without it first, and add it in a later apply.")

	imageAhead = Messages.Error("image_ahead",
		"Image of {{.component}} is too new: {{brief .machines}}",
		"Found {{quote .image}} for {{.component}} of {{.machines}}.",
		"Allowed: the minor version of {{.limit}} or an older one. {{.component}} must not be newer than kube-apiserver, "+
			"which {{if .plane}}gets {{.limit}} on {{.plane}}{{else}}follows `kubernetes_version`{{end}}.",
		"Change the patch that sets this image, or upgrade the other components with it.")

	kubernetesAwaitsMachines = Messages.Warning("kubernetes_awaits_machines",
		"Kubernetes upgrade of cluster {{.cluster}} waits for {{brief .machines}}",
		"{{.machines}} {{plural .machines \"was\" \"were\"}} not ready when the machines were last read.",
		"The upgrade waits until every machine of the resource answers and is Ready, up to its timeout (`timeouts`).",
		"Repair {{plural .machines \"it\" \"them\"}} first. Remove machines that are gone for good from the configuration.")

	kubernetesDowngrade = Messages.Warning("kubernetes_downgrade",
		"Kubernetes of cluster {{.cluster}} is downgraded",
		"`kubernetes_version` is {{.version}}, and these components are newer. The apply undoes an unfinished upgrade or "+
			"another change:{{bullets .components}}")

	kubernetesPatchDowngrade = Messages.Warning("kubernetes_patch_downgrade",
		"Kubernetes of cluster {{.cluster}} gets an older patch release",
		"These components follow `kubernetes_version` ({{.version}}) or their own images, which are older releases of the "+
			"same minor version:{{bullets .components}}")

	kubernetesRunsOther = Messages.Warning("kubernetes_runs_other",
		"Kubernetes of cluster {{.cluster}} runs other versions than its images",
		"The apply waits until these components run their images, and reports what prevents it:{{bullets .components}}")

	releaseNotPassed = Messages.Warning("release_not_passed",
		"Kubernetes {{.release}} is not on the upgrade path",
		"`kubernetes_upgrade_via` has {{.release}}, which the upgrade from {{.from}} to {{.to}} does not pass.",
		"Remove it, or name a release of a minor version in between.")

	kubernetesUnfinished = Messages.Warning("kubernetes_unfinished",
		"Kubernetes upgrade is not finished: {{brief .machines}}",
		"This apply leaves upgrades of {{if .kubelets}}kubelets{{else}}API servers{{end}} to a later apply:"+
			"{{bullets .steps}}",
		"A kubelet must not be newer than any API server of its cluster. No other resource of this apply works on the "+
			"components that these upgrades wait for.",
		"The cluster works, because API servers support older kubelets. Apply again once the other control planes are "+
			"upgraded. The next plan lists these steps.")
)

// The identity and the settings of a cluster.
var (
	contractChange = Messages.Error("contract_change",
		"Unsupported change of version_contract in cluster {{.cluster}}",
		"`version_contract` would change from {{.from}} to {{.to}}. It is fixed when the cluster is created, because "+
			"another contract rewrites the configuration of every machine.",
		"Only the change to {{.documents}}, and back, is supported.",
		"Set `version_contract` to {{.from}}, or omit it.")

	contractTooNew = Messages.Error("contract_too_new",
		"Unsupported change of version_contract in cluster {{.cluster}}",
		"{{.machines}} {{plural .machines \"runs\" \"run\"}} a Talos version that does not support the documents of "+
			"contract {{.contract}}. A machine can get its configuration before its upgrade, and would refuse it.",
		"Upgrade `talos_version` first, with `version_contract` at {{.from}}. Then change `version_contract`.")

	secretsChanged = Messages.Error("secrets_changed",
		"Unsupported change of the secrets of cluster {{.cluster}}",
		"The secrets would change, but the machines trust only the old ones. Nothing could be sent to them.",
		"Restore the old secrets. {{if .provided}}The provider had them when the cluster was last read.{{else}}State still "+
			"has them in this attribute, and you can import a file with them into `talosop_secrets`.{{end}}",
		"To recreate the cluster with other secrets, `taint` every resource with its machines. A plan with `-replace` is "+
			"refused.")

	keysMissing = Messages.Error("keys_missing",
		"Keys of machine {{.machine}} are missing",
		"{{.machine}} uses a {{.key}} that the secrets in the provider configuration do not have. The provider could no "+
			"longer identify the machine.",
		"Add the former keys to `previous` of the bundle. Remove them after an apply succeeded.")

	encryptionKeyRemoved = Messages.Warning("encryption_key_removed",
		"Encryption key for Secrets of cluster {{.cluster}} is removed",
		"API servers can no longer read Secrets that were encrypted with the former key (`aescbcencryptionsecret`).",
		"Write all Secrets again before this apply, as the guide on secrets describes.")

	encryptionKeyLost = Messages.Error("encryption_key_lost",
		"Secrets in etcd would become unreadable on {{brief .machines}}",
		"{{.machines}} {{plural .machines \"encrypts\" \"encrypt\"}} Secrets with {{.key}}, from a document "+
			"`KubeEtcdEncryptionConfig`. Talosop would replace it with keys under other names. kube-apiserver finds a key by the "+
			"name that is stored with each Secret, and could no longer read them.",
		"Add two patches for the control planes: `cluster: {secretboxEncryptionSecret: {$patch: delete}}`, and that document, "+
			"as `talosctl get machineconfig` shows it. Keep it out of version control, because it has the key.")

	isolationChange = Messages.Error("isolation_change",
		"Unsupported change of isolated in cluster {{.cluster}}",
		"`isolated` would change from {{.from}} to {{.to}}. It is fixed when the cluster is created, because machines with "+
			"discovery join the cluster that has the same secrets.",
		"Set `isolated = {{.from}}`, or destroy this cluster and create another one.")

	isolatedPool = Messages.Error("isolated_pool",
		"Unsupported pool of isolated cluster {{.cluster}}",
		"The cluster is isolated, and its machines are in containers without a DNS server. Their workers learn the address "+
			"of the endpoint only from the resource of the control planes.",
		"List the workers in the `talosop_cluster` resource of the cluster.")

	snapshotOfOther = Messages.Error("snapshot_of_other_cluster",
		"Snapshot of another cluster: {{.at}}",
		"{{.snapshot}} has the mark {{.found}} in its name, and the secrets of this cluster have the mark {{.wanted}}. "+
			"The data of a snapshot is encrypted and signed with the keys of its own cluster.",
		"Choose a snapshot of this cluster, or use the secrets of the cluster that the snapshot is of.")

	snapshotRestored = Messages.Warning("snapshot_restored",
		"Snapshot was restored before: {{.at}}",
		"{{.snapshot}} was already restored into this cluster, as `restored_from` shows.",
		"It is not restored again, because data written since then would be lost.",
		"To restore etcd, name a newer snapshot. To restore this one again on purpose, copy the object or the file, and "+
			"name the copy with its `sha256`.")
)

// Configurations that cannot be made or compared.
var (
	configurationFailed = Messages.Error("configuration_failed",
		"Unable to render the configuration of the {{.object}}",
		"The configuration cannot be rendered: {{.problem}}.",
		"Correct the settings or patches that the error names.")

	comparisonFailed = Messages.Error("comparison_failed",
		"Unable to compare the configurations of {{brief .machines}}",
		"The recorded and the planned configuration of {{.machines}} cannot be compared: {{.problem}}.",
		"Check the patches of {{plural .machines \"the machine\" \"these machines\"}}. "+
			"If they are correct, report this with the version of the provider.")

	podFailed = Messages.Error("pod_failed",
		"Unable to plan the pod of {{.machine}}",
		"The pod of {{.machine}} cannot be planned: {{.problem}}.",
		"Check the `pod` settings. If they are correct, report this with the version of the provider.")
)

// The canary pool.
var (
	unknownCanary = Messages.Invalid("canary_pool",
		"Found {{quote .value}}.",
		"Allowed: {{if .pools}}{{.pools}}{{else}}no pools, because this cluster has no workers{{end}}.",
		"Name a pool of `workers`, whose machines change before all others.")

	soakTooLong = Messages.Invalid("canary_soak",
		"Found {{.soak}}, while `timeouts.update` is {{.limit}}.",
		"Allowed: less than `timeouts.update`, which also includes the changes before and after the soak.",
		"Raise `timeouts.update` to the time of the whole rollout, or shorten `soak`.")
)

// Hooks of users.
var (
	unknownHookPool = Messages.Invalid("hook_pool",
		"Found {{quote .value}}.",
		"Allowed: {{if .pools}}{{.pools}}{{else}}no pools, because this resource has none{{end}}.",
		"Name pools of this resource; `control_plane` is the control planes. Without `pools`, the hook is for all machines.")

	hooksFailed = Messages.Warning("hooks_failed",
		"Failed hooks of cluster {{.cluster}}",
		"These hooks failed, and the apply continued because `on_failure` is `continue`:{{bullets .hooks}}",
		"A hook whose `after` failed stays recorded, and the next apply repeats it. Correct the cause, then apply again.")
)
