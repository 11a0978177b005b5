# A cluster whose changes reach one worker first. The others follow after an hour in which it works.
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
    canary = {
      install  = { disk = "/dev/sda" }
      machines = { w-1 = { address = "10.0.0.21" } }
    }
    batch = {
      install         = { disk = "/dev/sda" }
      machines        = { for n in [2, 3, 4, 5] : "w-${n}" => { address = "10.0.0.2${n}" } }
      max_unavailable = "2"
    }
  }

  upgrade = { canary = { pool = "canary", soak = "1h" } }

  health_checks = {
    shop = { http = { url = "https://shop.example.com/healthz" } }
  }

  timeouts = { update = "4h" } # the rollout and the soak
}
