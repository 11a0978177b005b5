# Denies plans that wipe or remove Talos machines without an approval. `impact` has a removed machine only in `removed`, and one
# that is wiped and joins again in `wiped`. For conftest:
#
#   terraform plan -out=plan && terraform show -json plan > plan.json
#   conftest test --policy . plan.json
package main

import rego.v1

# The resources with machines. Only their plans have `impact`. What operations do follows from their type alone.
machine_types := {"talosop_cluster", "talosop_control_plane", "talosop_worker", "talosop_machine"}

changes contains resource if {
	some resource in input.resource_changes
	resource.mode == "managed"
	resource.type in machine_types
	resource.change.actions != ["no-op"]
}

# A destroy or a replacement wipes every machine of the resource. Their `impact` is missing or unknown.
deny contains sprintf("%s: its machines would be wiped, because it is destroyed or replaced", [resource.address]) if {
	some resource in changes
	"delete" in resource.change.actions
	resource.change.before.on_destroy != "preserve"
}

deny contains sprintf("%s: %s would be wiped", [resource.address, concat(", ", resource.change.after.impact.wiped)]) if {
	some resource in changes
	count(resource.change.after.impact.wiped) > 0
}

deny contains sprintf("%s: %s would leave the cluster", [resource.address, concat(", ", resource.change.after.impact.removed)]) if {
	some resource in changes
	count(resource.change.after.impact.removed) > 0
}

deny contains sprintf("%s: the cluster would end", [resource.address]) if {
	some resource in changes
	resource.change.after.impact.ends_cluster
}

# An unknown value may be anything.
deny contains sprintf("%s: what happens to its machines depends on values that are not known yet", [resource.address]) if {
	some resource in changes
	unknown(resource.change.after_unknown.impact)
}

unknown(impact) if impact == true

unknown(impact) if {
	some part in ["wiped", "removed", "ends_cluster"]
	impact[part] == true
}

# The resource wipes volumes when it is created, and again when its triggers change.
deny contains sprintf("%s: its machines would be wiped", [resource.address]) if {
	some resource in input.resource_changes
	resource.type == "talosop_machine_reset"
	some action in resource.change.actions
	action in {"create", "update"}
}

# The resource takes its machine out of the cluster when it is destroyed or replaced.
deny contains sprintf("%s: its machine would leave the cluster", [resource.address]) if {
	some resource in input.resource_changes
	resource.type == "talosop_machine_leave"
	"delete" in resource.change.actions
}

# An action of Terraform 1.14 and newer that the plan invokes, such as in the `action_trigger` of a resource.
deny contains sprintf("%s: its machines would be wiped or leave the cluster", [action.address]) if {
	some action in object.get(input, "action_invocations", [])
	action.type in {"talosop_machine_reset", "talosop_machine_leave"}
}
