# A verified snapshot of etcd in the folder backups. A change of triggers takes another one.
resource "talosop_etcd_backup" "this" {
  cluster  = talosop_control_plane.this.cluster
  file     = { path = "backups" }
  triggers = { talos = var.talos_version }
}

output "snapshot" {
  value = talosop_etcd_backup.this.key
}
