variable "cluster" {
  description = "The handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "restart" {
  description = "Another value restarts all machines, one after the other."
  type        = string
  default     = "2026-11-26"
}

resource "talosop_rolling_restart" "all" {
  cluster         = var.cluster
  max_unavailable = "20%"
  triggers        = { restart = var.restart }
}

# After the restart, whose pods write into etcd.
resource "talosop_etcd_defragment" "after" {
  cluster  = var.cluster
  triggers = { restarted = talosop_rolling_restart.all.finished_at }
}
