variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# Run this after a patch that changes the manifests, such as arguments of kube-proxy.
resource "talosop_bootstrap_manifests_sync" "this" {
  cluster  = var.cluster
  triggers = { proxy = "ipvs" }
}
