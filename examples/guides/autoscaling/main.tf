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
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { for name, address in var.cp_nodes : name => { address = address } }
  }

  # Upgrades machines of the group that are older than talos_version, two at a time, after the machines above.
  upgrade_unmanaged = {
    selector        = "example.com/group=spot"
    image           = "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
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
  talos_version = "v1.14.1"
  platform      = "aws"
  labels        = { "example.com/group" = "spot" }
}

resource "terraform_data" "launch_template" {
  input = { user_data = data.talosop_machine_config.spot.config }

  lifecycle {
    ignore_changes = [input]
  }
}

# Running machines of the group follow changes of the configuration, two at a time.
resource "talosop_unmanaged_workers" "spot" {
  cluster         = talosop_cluster.prod.cluster
  selector        = "example.com/group=spot"
  config          = data.talosop_machine_config.spot.config
  max_unavailable = "2"
}

# The machines with another Talos version than the template, from the last refresh.
output "outdated" {
  value = [for name, node in coalesce(talosop_cluster.prod.observed_others, {}) : name
    if lookup(node.labels, "example.com/group", "") == "spot" && node.talos_version != "v1.14.1"
  ]
}
