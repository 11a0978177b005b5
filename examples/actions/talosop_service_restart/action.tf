variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_service_restart.kubelet
action "talosop_service_restart" "kubelet" {
  config {
    cluster  = var.cluster
    service  = "kubelet"
    machines = ["worker-1"]
  }
}
