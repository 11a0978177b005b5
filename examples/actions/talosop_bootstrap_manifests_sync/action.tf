variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_bootstrap_manifests_sync.now
action "talosop_bootstrap_manifests_sync" "now" {
  config {
    cluster = var.cluster
  }
}
