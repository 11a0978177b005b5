# Decides whether a plan is a repair and nothing else. repair.sh asks for `decision`, which is apply, nothing or stop, and prints
# `report`. It decides by the plan alone: by its changes, and by the health of the cluster that it read.
package repair

import rego.v1

# How long a worker is not Ready before it is repaired.
patience := time.parse_duration_ns("1h")

# If more workers than this are not Ready, they probably have a common cause, which no reset repairs.
most_at_once := 1

# How many machines are reset within a day, including those that people reset.
most_in_a_day := 2

# A machine that fails again within a day after its reset needs a person.
day := time.parse_duration_ns("24h")

# What a worker that is not Ready changes, and certificates that are due. All other conditions of the cluster must be True.
ignored_conditions := {"NodesReady", "NodesSchedulable", "CertificatesValid"}

# What a refresh, or the wait for a machine, changes in a cluster. Its other attributes are arguments, or follow from them.
observed := {
	"bootstrap_manifests_version", "cluster", "impact", "observed", "observed_kubernetes_versions", "observed_others",
	"observed_talos_versions", "operations", "phase", "record",
}

now := time.parse_rfc3339_ns(input.timestamp)

# The decision and the report.

default decision := "stop"

decision := "apply" if {
	count(due) > 0
	count(obstacles) == 0
}

decision := "apply" if only_records

decision := "nothing" if {
	nodes
	count(due) == 0
	not only_records
}

report contains sprintf("%s is not Ready since %s: it is reset", [name, nodes[name].last_change]) if {
	decision == "apply"
	some name in due
}

report contains sprintf("%s is not Ready since %s: not long enough", [name, nodes[name].last_change]) if {
	decision == "nothing"
	some name in broken
}

report contains sprintf("the record of a repair is removed: %s", [record.address]) if {
	decision == "apply"
	some record in records
}

report contains obstacle if {
	decision == "stop"
	some obstacle in obstacles
}

# What needs a person, once a machine is due.

obstacles contains "the cluster was not observed: its Kubernetes API does not list the nodes" if not nodes

obstacles contains sprintf("%s is %s: %s", [condition.name, condition.status, condition.reason]) if {
	some condition in health.conditions
	condition.status != "True"
	not condition.name in ignored_conditions
}

obstacles contains sprintf("%s is not Ready, and the plan does not repair it", [name]) if {
	some name, node in nodes
	not node.ready
	not name in broken
}

obstacles contains sprintf("%s is not Ready since %s: not long enough", [name, nodes[name].last_change]) if {
	some name in broken - due
}

obstacles contains sprintf("%s is no worker of the cluster that is not Ready", [name]) if {
	some name in broken
	not is_broken_worker(name)
}

obstacles contains sprintf("%s is cordoned: a person or another apply works on it", [name]) if {
	some name in broken
	not nodes[name].schedulable
}

obstacles contains sprintf("%s failed again after its reset at %s", [name, nodes[name].reset_at]) if {
	some name in broken
	time.parse_rfc3339_ns(nodes[name].last_change) < time.parse_rfc3339_ns(nodes[name].reset_at) + day
}

obstacles contains sprintf("%d workers are not Ready: at most %d are repaired at once", [count(broken), most_at_once]) if {
	count(broken) > most_at_once
}

obstacles contains sprintf("%d machines were reset within a day: at most %d are", [count(recent), most_in_a_day]) if {
	count(recent) + count(broken) > most_in_a_day
}

obstacles contains sprintf("%s wipes more than EPHEMERAL", [reset.address]) if {
	some reset in resets
	not wipes_only_ephemeral(reset.change.after)
}

obstacles contains sprintf("the plan also changes %s (%s)", [change.address, concat(", ", change.change.actions)]) if {
	some change in changes - ((resets | records) | waits)
}

obstacles contains "the plan also invokes actions" if count(object.get(input, "action_invocations", [])) > 0

# The parts of the plan.

changes contains resource if {
	some resource in input.resource_changes
	resource.mode == "managed"
	resource.change.actions != ["no-op"]
}

resets contains change if {
	some change in changes
	change.type == "talosop_machine_reset"
	change.change.actions in [["create"], ["update"]]
}

# The machines that the plan resets, and those of them that are not Ready for long enough.
broken contains name if {
	some reset in resets
	some name in reset.change.after.machines
}

due contains name if {
	some name in broken
	now - time.parse_rfc3339_ns(nodes[name].last_change) >= patience
}

# The records of finished repairs. Their removal touches no machine.
records contains change if {
	some change in changes
	change.type == "talosop_machine_reset"
	change.change.actions == ["delete"]
}

only_records if {
	nodes
	count(records) > 0
	count(changes - records) == 0
}

# An update that takes no machine out of service and has the arguments of the last apply: it waits until the machines work.
waits contains change if {
	some change in changes
	change.change.actions == ["update"]
	is_idle(change.change.after.impact)

	every name, value in change.change.before {
		is_kept(change.change.after, name, value)
	}
}

is_idle(impact) if {
	impact.ends_cluster == false
	every part in ["drained", "rebooted", "upgraded", "kubernetes_upgraded", "wiped", "removed", "pods_replaced"] {
		impact[part] == []
	}
}

is_kept(_, name, _) if name in observed

is_kept(after, name, value) if after[name] == value

is_broken_worker(name) if {
	nodes[name].role == "worker"
	not nodes[name].ready
	not health.unmanaged[name]
}

wipes_only_ephemeral(reset) if {
	reset.user_disks == null
	reset.wipe in [null, ["EPHEMERAL"]]
}

# The machines that were reset within the last day, by people, too.
recent contains name if {
	some name, node in nodes
	now - time.parse_rfc3339_ns(node.reset_at) < day
}

# The health of the cluster as this plan read it.
health := resource.values if {
	some resource in input.prior_state.values.root_module.resources
	resource.address == "data.talosop_cluster_health.this[0]"
}

nodes := health.nodes if is_object(health.nodes)
