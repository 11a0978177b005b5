variable "cluster" {
  description = "The cluster handle: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# A local file for daily use: kubectl --kubeconfig kubeconfig get nodes
resource "talosop_kubeconfig_file" "admin" {
  cluster = var.cluster
  path    = "${path.root}/kubeconfig"
}

# For a user with the rights of the group. It is valid for a month, and an apply in the last week renews it.
resource "talosop_kubeconfig_file" "viewer" {
  cluster      = var.cluster
  path         = pathexpand("~/.kube/prod-viewer")
  user         = "jane"
  groups       = ["viewers"]
  ttl          = "720h"
  renew_before = "168h"
}
