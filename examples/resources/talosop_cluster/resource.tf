resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.0.11" }
      cp-2 = { address = "10.0.0.12" }
      cp-3 = { address = "10.0.0.13", install = { disk = "/dev/nvme0n1" } }
    }

    # The host of the endpoint is a virtual IP that the control planes share.
    vip = { address = "10.0.0.10", link = "eth0" }
  }

  workers = {
    batch = {
      install = { disk = "/dev/sda" }

      labels = { "example.com/pool" = "batch" }

      machines = {
        w-1 = { address = "10.0.0.21" }
        w-2 = { address = "10.0.0.22", labels = { "example.com/disk" = "fast" } }
      }
    }

    storage = {
      install = { disk_selector = { type = "nvme", size = "< 1TB" } }

      machines = {
        w-1 = { address = "10.0.0.31" }
      }
    }
  }

  # For every machine of the cluster.
  sysctls = { "net.core.somaxconn" = "65535" }

  # Use patches for settings without an attribute.
  cluster_config_patches = [yamlencode({
    machine = { time = { servers = ["time.cloudflare.com"] } }
  })]

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
