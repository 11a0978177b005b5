variable "cp_nodes" {
  type    = map(string)
  default = { cp-1 = "10.0.0.11", cp-2 = "10.0.0.12", cp-3 = "10.0.0.13" }
}

resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.35.2"

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { for name, address in var.cp_nodes : name => { address = address } }
  }

  # Upgrades machines of the group that are older than talos_version, two at a time, after the machines above.
  upgrade_unmanaged = {
    selector        = "example.com/group=spot"
    image           = "ghcr.io/siderolabs/installer"
    max_unavailable = "2"
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}."
    }
  }
}

# The autoscaler gives this configuration to its machines as user data. The label selects the group.
data "talosop_machine_config" "spot" {
  cluster       = talosop_cluster.prod.cluster
  talos_version = "v1.13.0"
  platform      = "aws"
  labels        = { "example.com/group" = "spot" }
}

resource "terraform_data" "launch_template" {
  input = { user_data = data.talosop_machine_config.spot.config }

  lifecycle {
    ignore_changes = [input]
  }
}

# The machines with another Talos version than the template, from the last refresh.
output "outdated" {
  value = [for name, node in coalesce(talosop_cluster.prod.observed_others, {}) : name
    if lookup(node.labels, "example.com/group", "") == "spot" && node.talos_version != "v1.13.0"
  ]
}
