# The handle of the cluster: an output of the stack that made the control plane, or talosop_control_plane.prod.cluster.
variable "cluster" {
  type      = any
  sensitive = true
}

# Workers that an autoscaler makes. They have no hostname: the platform names each of them.
data "talosop_machine_config" "autoscaled" {
  cluster       = var.cluster
  talos_version = "v1.13.0"
  platform      = "aws"
  labels        = { "example.com/pool" = "autoscaled" }
}

# In place of a launch template of a cloud: VMs are made anew only when a version of the image changes, and not with each
# change of the configuration, since a change of user data replaces the VM on most platforms.
resource "terraform_data" "launch_template" {
  input            = { user_data = data.talosop_machine_config.autoscaled.config }
  triggers_replace = [data.talosop_machine_config.autoscaled.talos_version]

  lifecycle {
    ignore_changes = [input]
  }
}

# For reviews: secrets are not in it.
output "configuration" {
  value = data.talosop_machine_config.autoscaled.redacted
}
