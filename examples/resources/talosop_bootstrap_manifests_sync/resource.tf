variable "cluster" {
  description = "The handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# After a patch that changes what Talos renders, such as arguments of kube-proxy.
resource "talosop_bootstrap_manifests_sync" "this" {
  cluster  = var.cluster
  triggers = { proxy = "ipvs" }
}
