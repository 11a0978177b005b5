variable "cluster" {
  description = "The cluster handle: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Created for this run and never stored. Other providers can use it once the cluster exists:
#
#   provider "kubernetes" {
#     host                   = ephemeral.talosop_kubeconfig.admin.endpoint
#     cluster_ca_certificate = ephemeral.talosop_kubeconfig.admin.cluster_ca_certificate
#     client_certificate     = ephemeral.talosop_kubeconfig.admin.client_certificate
#     client_key             = ephemeral.talosop_kubeconfig.admin.client_key
#   }
ephemeral "talosop_kubeconfig" "admin" {
  cluster = var.cluster
  ttl     = "30m"
}
