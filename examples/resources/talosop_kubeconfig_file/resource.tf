variable "cluster" {
  description = "The handle of the cluster: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Written beside the configuration for the day: kubectl --kubeconfig kubeconfig get nodes
resource "talosop_kubeconfig_file" "admin" {
  cluster = var.cluster
  path    = "${path.root}/kubeconfig"
}

# For a person who may do what the group may. An apply in the last week of the month that it lasts writes the next one.
resource "talosop_kubeconfig_file" "viewer" {
  cluster      = var.cluster
  path         = pathexpand("~/.kube/prod-viewer")
  user         = "jane"
  groups       = ["viewers"]
  ttl          = "720h"
  renew_before = "168h"
}
