variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_machine_reset.w_1
action "talosop_machine_reset" "w_1" {
  config {
    cluster  = var.cluster
    machines = ["10.0.0.21"]
  }
}
