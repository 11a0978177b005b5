variable "cluster" {
  description = "The cluster handle: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Read-only credentials that may also take etcd snapshots.
ephemeral "talosop_talosconfig" "backup" {
  cluster = var.cluster
  roles   = ["os:reader", "os:etcd:backup"]
  ttl     = "1h"
}
