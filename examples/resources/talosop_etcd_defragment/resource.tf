variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Runs once in each month with an apply.
resource "talosop_etcd_defragment" "monthly" {
  cluster  = var.cluster
  triggers = { month = formatdate("YYYY-MM", plantimestamp()) }
}
