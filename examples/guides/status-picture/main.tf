# Use locals: if a data source refers to a resource directly, the apply reads it whenever the resource changes.
locals {
  cluster    = talosop_control_plane.prod.cluster
  operations = concat(talosop_control_plane.prod.operations, talosop_worker.prod.operations)
}

# The state of the cluster at the time of the plan, and its pending operations.
data "talosop_cluster_health" "prod" {
  cluster    = local.cluster
  operations = local.operations
}

output "status" {
  value = data.talosop_cluster_health.prod.markdown
}

output "status_svg" {
  value = data.talosop_cluster_health.prod.svg
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_worker" "prod" {
  cluster       = talosop_control_plane.prod.cluster
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }

  machines = {
    w-1 = { address = "10.0.0.21" }
    w-2 = { address = "10.0.0.22" }
  }
}
