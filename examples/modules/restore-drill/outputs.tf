output "snapshot" {
  description = "The restored snapshot: key, time and versions."
  value = {
    key        = local.snapshot.key
    time       = local.snapshot.time
    talos      = local.snapshot.talos_version
    kubernetes = local.snapshot.kubernetes_version
  }
}

output "rpo_seconds" {
  description = "Age of the newest snapshot when the drill began: what a loss at that moment would cost."
  value       = local.rpo_seconds
}

output "rto_seconds" {
  description = "Duration from the start of the drill to a cluster that works."
  value       = local.rto_seconds
}

output "objects" {
  description = "Number of objects by resource: in the snapshot, after the restore, and after every member restarted."
  value = {
    for resource in distinct(concat(keys(coalesce(local.snapshot.objects, {})), keys(talosop_etcd_backup.restarted.objects))) :
    resource => {
      snapshot  = lookup(coalesce(local.snapshot.objects, {}), resource, 0)
      restored  = lookup(talosop_etcd_backup.restored.objects, resource, 0)
      restarted = lookup(talosop_etcd_backup.restarted.objects, resource, 0)
    }
  }
}

output "missing" {
  description = "The resources of which objects are missing, except those in transient. Empty if the drill passed."
  value       = local.missing
}
