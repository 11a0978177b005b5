variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Repairs a machine whose EPHEMERAL is broken. Its configuration and its user volumes stay.
resource "talosop_machine_reset" "w_1" {
  cluster  = var.cluster
  machines = ["10.0.0.21"]
}

# Empties a data disk, such as one for another storage system. EPHEMERAL stays.
resource "talosop_machine_reset" "data" {
  cluster    = var.cluster
  machines   = ["10.0.0.22"]
  user_disks = ["/dev/sdb"]
  triggers   = { storage = "2026-11-29" }
}
