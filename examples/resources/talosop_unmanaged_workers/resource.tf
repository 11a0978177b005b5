variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

# The configuration that the autoscaler gives to new machines as user data.
data "talosop_machine_config" "spot" {
  cluster       = var.cluster
  talos_version = "v1.14.1"
  platform      = "aws"
  labels        = { "example.com/group" = "spot" }
}

# Running machines follow, a fifth of them at a time.
resource "talosop_unmanaged_workers" "spot" {
  cluster         = var.cluster
  selector        = "example.com/group=spot"
  config          = data.talosop_machine_config.spot.config
  max_unavailable = "20%"
  drain           = { timeout = "10m" }
}

# The nodes that differ from the configuration.
output "outdated" {
  value = [for name, node in coalesce(talosop_unmanaged_workers.spot.nodes, {}) : name if length(node.drift) > 0]
}
