variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# All machines, control planes first, with at most a fifth of the workers at once.
resource "talosop_rolling_restart" "all" {
  cluster         = var.cluster
  max_unavailable = "20%"
  drain           = { timeout = "10m", on_timeout = "force" }
  triggers        = { window = "2026-11-28" }

  timeouts = { create = "4h", update = "4h" }
}
