# What is wiped when machines leave: by default STATE and EPHEMERAL.
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
    machines = { cp-1 = { address = "10.0.0.11" } }
  }

  workers = {
    storage = {
      install = { disk = "/dev/sda" }

      # Machines that leave keep neither META nor the data on their second disk.
      reset = {
        wipe       = ["STATE", "EPHEMERAL", "META"]
        user_disks = ["/dev/nvme0n1"]
      }

      machines = {
        w-1 = { address = "10.0.0.21" }
        w-2 = {
          address = "10.0.0.22"
          reset   = { wipe = ["STATE"], graceful = false } # local data of pods stays
        }
      }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
