# A cluster with a maintenance window on Saturday nights, and one worker that is locked.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
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
    machines = { for n in [1, 2, 3] : "cp-${n}" => { address = "10.0.0.1${n}" } }
  }

  workers = {
    batch = {
      install = { disk = "/dev/sda" }
      machines = {
        w-1 = { address = "10.0.0.21" }
        w-2 = { address = "10.0.0.22", locked = true }
      }
    }
  }

  maintenance_window = {
    cron      = "0 22 * * 6"
    duration  = "4h"
    time_zone = "Europe/Berlin"
  }

  timeouts = { update = "6h" } # an apply on Saturday evening waits for the window
}
