# One variable for the Talos version of the cluster. A change upgrades control planes first, then workers.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "talos_version" {
  default = "v1.14.1"
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = var.talos_version
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }
  machines           = { for n in [1, 2, 3] : "cp-${n}" => { address = "10.0.0.1${n}" } }

  etcd_snapshot_folder = "./snapshots" # before the first control plane goes down
  timeouts             = { update = "2h" }
}

resource "talosop_worker" "batch" {
  cluster       = talosop_control_plane.prod.cluster
  name          = "batch"
  talos_version = var.talos_version
  install       = { disk = "/dev/sda" }
  machines      = { for n in range(10) : "batch-${n}" => { address = "10.0.0.2${n}" } }

  max_unavailable = "20%"
  drain           = { timeout = "10m", wait_for_volumes = true } # of Longhorn, Rook-Ceph or another CSI driver
  timeouts        = { update = "2h" }
}
