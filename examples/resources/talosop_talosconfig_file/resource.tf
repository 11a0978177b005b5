variable "cluster" {
  description = "The cluster handle: talosop_control_plane.prod.cluster."
  type        = any
  sensitive   = true
}

# Read-only credentials: talosctl --talosconfig talosconfig --nodes 10.0.0.11 dashboard
resource "talosop_talosconfig_file" "reader" {
  cluster = var.cluster
  path    = "${path.root}/talosconfig"
  roles   = ["os:reader"]
  ttl     = "8h"
}
