variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_support_bundle.all
action "talosop_support_bundle" "all" {
  config {
    cluster   = var.cluster
    path      = "support.zip"
    overwrite = true
  }
}
