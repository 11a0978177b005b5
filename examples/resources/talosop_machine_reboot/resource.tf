variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Change the date to reboot them again.
resource "talosop_machine_reboot" "gpu" {
  cluster  = var.cluster
  machines = ["10.0.0.21", "10.0.0.22"]
  triggers = { driver = "2026-11-26" }
}
