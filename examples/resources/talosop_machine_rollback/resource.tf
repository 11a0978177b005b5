variable "cluster" {
  description = "The handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Its talos_version has to follow: the next apply of its resource upgrades it again.
resource "talosop_machine_rollback" "w_1" {
  cluster  = var.cluster
  machines = ["10.0.0.21"]
}
