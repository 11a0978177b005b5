variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

resource "talosop_service_restart" "kubelet" {
  cluster  = var.cluster
  service  = "kubelet"
  machines = ["worker-1"]
}
