variable "cluster" {
  description = "The handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Once for each month in which somebody applies.
resource "talosop_etcd_defragment" "monthly" {
  cluster  = var.cluster
  triggers = { month = formatdate("YYYY-MM", plantimestamp()) }
}
