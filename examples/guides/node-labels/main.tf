# Labels, annotations and taints of nodes, for the cluster, a pool and a machine. A machine has all of them: the
# narrowest level decides if two have the same key.
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

  labels      = { "topology.kubernetes.io/region" = "berlin" }
  annotations = { "example.com/owner" = "platform" }

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.0.11", labels = { "topology.kubernetes.io/zone" = "rack-1" } }
      cp-2 = { address = "10.0.0.12", labels = { "topology.kubernetes.io/zone" = "rack-2" } }
      cp-3 = { address = "10.0.0.13", labels = { "topology.kubernetes.io/zone" = "rack-3" } }
    }
  }

  workers = {
    batch = {
      install  = { disk = "/dev/sda" }
      labels   = { "example.com/pool" = "batch" }
      machines = { w-1 = { address = "10.0.0.21", labels = { "topology.kubernetes.io/zone" = "rack-1" } } }
    }

    gpu = {
      install = { disk = "/dev/sda" }
      labels  = { "example.com/pool" = "gpu" }
      taints  = { "example.com/gpu" = "NoSchedule" } # from Talos 1.14

      machines = { gpu-1 = { address = "10.0.0.31", labels = { "topology.kubernetes.io/zone" = "rack-2" } } }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
