# The cluster handle: an output of the stack that creates the control plane, or talosop_control_plane.prod.cluster.
variable "cluster" {
  type      = any
  sensitive = true
}

# Workers that an autoscaler creates. They have no hostname, because the platform sets it.
data "talosop_machine_config" "autoscaled" {
  cluster       = var.cluster
  talos_version = "v1.14.1"
  platform      = "aws"
  labels        = { "example.com/pool" = "autoscaled" }
}

# Stands in for the launch template of a cloud. On most platforms, a change of the user data replaces the VM. Here only a new
# Talos version replaces VMs, not every configuration change.
resource "terraform_data" "launch_template" {
  input            = { user_data = data.talosop_machine_config.autoscaled.config }
  triggers_replace = [data.talosop_machine_config.autoscaled.talos_version]

  lifecycle {
    ignore_changes = [input]
  }
}

# For reviews: contains no secrets.
output "configuration" {
  value = data.talosop_machine_config.autoscaled.redacted
}
