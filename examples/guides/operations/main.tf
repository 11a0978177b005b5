variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "restart" {
  description = "Change this to restart all machines, one after the other."
  type        = string
  default     = "2026-11-26"
}

resource "talosop_rolling_restart" "all" {
  cluster         = var.cluster
  max_unavailable = "20%"
  triggers        = { restart = var.restart }
}

# Runs after the restart, during which pods write to etcd.
resource "talosop_etcd_defragment" "after" {
  cluster  = var.cluster
  triggers = { restarted = talosop_rolling_restart.all.finished_at }
}
