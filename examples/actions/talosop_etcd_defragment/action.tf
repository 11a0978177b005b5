variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# terraform apply -invoke=action.talosop_etcd_defragment.now
action "talosop_etcd_defragment" "now" {
  config {
    cluster = var.cluster
  }
}
