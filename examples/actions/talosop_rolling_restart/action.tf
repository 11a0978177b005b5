variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_rolling_restart.all
action "talosop_rolling_restart" "all" {
  config {
    cluster         = var.cluster
    max_unavailable = "20%"
    timeouts        = { invoke = "4h" }
  }
}
