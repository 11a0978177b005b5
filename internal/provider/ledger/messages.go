package ledger

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about machines that several resources of one plan have.
var Messages = finding.NewCatalog("Machines of several resources")

var (
	severalReplaced = Messages.Error("control_planes_replaced_together",
		"Plan replaces several control planes: {{.objects}}",
		"{{.objects}} are control planes of one cluster, and this plan replaces all of them.",
		"Each of them has to join etcd again before the next one leaves. "+
			"With `replace_triggered_by`, the CLIs remove all of them before they create the first one.",
		"Nothing was changed.",
		"Replace one control plane in each apply: use `-replace` once, or `-target` for the machine and what triggers "+
			"its replacement.")

	destroyedWhileJoining = Messages.Error("control_planes_destroyed_while_joining",
		"Plan destroys all control planes that {{.joining}} joins",
		"This plan destroys every control plane of the cluster, and {{.joining}} would join it.",
		"A plan does not order the two, so the cluster and its etcd could end before the new control plane joins.",
		"Nothing was changed.",
		"Add the new control planes and apply. Then remove the old ones and apply again.")

	machineOfAnother = Messages.Error("machine_of_another_resource",
		"Machine {{.machine}} belongs to another resource",
		"{{.machine}} of {{.object}} has the address or hardware of {{.other_machine}} of {{.other_object}}, "+
			"at {{.address}}.",
		"Each machine of a cluster belongs to one resource.",
		"Remove one of the two, or correct its address.")

	machineReused = Messages.Error("machine_planned_twice",
		"Plan resets {{.machine}} and creates {{.created}} from it",
		"{{.created}} would be created from {{.machine}} at {{.address}}, and {{.removed}} would reset the same machine.",
		"A plan does not order the two, so a machine in use could be reset.",
		"Nothing was changed.",
		"If you renamed the resource, or moved it to another module or key, add "+
			"`moved { from = OLD_ADDRESS, to = NEW_ADDRESS }`.",
		"If a resource of another type takes over the machine, add "+
			"`removed { from = OLD_ADDRESS, lifecycle { destroy = false } }` for the old one.",
		"To reset the machine first, apply only its removal.")
)
