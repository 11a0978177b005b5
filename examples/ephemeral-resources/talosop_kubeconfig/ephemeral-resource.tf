variable "cluster" {
  description = "The handle of the cluster: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Minted for this run, never stored. Other providers connect with it as soon as the cluster is there:
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
