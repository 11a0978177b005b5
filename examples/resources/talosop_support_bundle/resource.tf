variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "report" {
  description = "Change the name to write another bundle."
  type        = string
  default     = "2026-11-26"
}

resource "talosop_support_bundle" "report" {
  cluster  = var.cluster
  path     = "support-${var.report}.zip"
  triggers = { report = var.report }
}
