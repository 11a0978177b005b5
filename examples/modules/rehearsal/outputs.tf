output "snapshot" {
  description = "Key of the restored snapshot, for the variable of the same name."
  value       = local.key
}

output "skipped" {
  description = "Documents and fields of the patches that the copy does not have, because they are bound to machines."
  value       = [for part in local.patches.skipped : "${part.path}: ${part.reason}"]
}

output "operations" {
  description = "What the last apply did to the machines of the copy, in order."
  value       = talosop_cluster.this.operations
}

output "conditions" {
  description = "Conditions of the copy that are not True, with their reasons. Empty if all is well."
  value = {
    for c in data.talosop_cluster_health.this.conditions : c.name => c.reason if c.status != "True"
  }
}

output "problems" {
  description = "What the change would run into, or what is left after it: code, object and reason of each."
  value = [
    for p in data.talosop_upgrade_checks.this.problems : p
    if var.workers > 0 || !contains(["pod_not_ready", "service_not_ready"], p.code)
  ]
}
