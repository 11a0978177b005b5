variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Change talos_version of its resource too. Otherwise the next apply upgrades it again.
resource "talosop_machine_rollback" "w_1" {
  cluster  = var.cluster
  machines = ["10.0.0.21"]
}
