variable "cluster" {
  description = "The handle of the cluster: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Credentials that may look and may take etcd snapshots, and may change nothing.
ephemeral "talosop_talosconfig" "backup" {
  cluster = var.cluster
  roles   = ["os:reader", "os:etcd:backup"]
  ttl     = "1h"
}
