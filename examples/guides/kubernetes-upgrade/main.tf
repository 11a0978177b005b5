terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "kubernetes_version" {
  type    = string
  default = "v1.37.0" # was v1.35.4
}

resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = var.kubernetes_version

  # The release of v1.36 to use between v1.35 and v1.37, instead of the newest one.
  kubernetes_upgrade_via = ["v1.36.3"]

  # Pods keep running when their kubelet restarts, but some storage and device plugins need a drained node.
  drain_before_kubelet_upgrade = true

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.0.11" }
      cp-2 = { address = "10.0.0.12" }
      cp-3 = { address = "10.0.0.13" }
    }
  }

  workers = {
    batch = {
      install         = { disk = "/dev/sda" }
      max_unavailable = "25%"

      machines = {
        w-1 = { address = "10.0.0.21" }
        w-2 = { address = "10.0.0.22" }
        w-3 = { address = "10.0.0.23" }
        w-4 = { address = "10.0.0.24" }
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

# A separate pool gets the version from the handle and follows in the same apply. Upgrade settings belong to each resource.
resource "talosop_worker" "gpu" {
  name          = "gpu"
  cluster       = talosop_cluster.prod.cluster
  talos_version = "v1.14.1"
  install       = { disk = "/dev/nvme0n1" }

  kubernetes_upgrade_via       = ["v1.36.3"]
  drain_before_kubelet_upgrade = true

  machines = {
    gpu-1 = { address = "10.0.0.31" }
  }
}

data "talosop_cluster_health" "prod" {
  cluster = talosop_cluster.prod.cluster
}

# Warns if the cluster is unhealthy, in plans without pending changes and after each apply. It stops neither.
check "prod" {
  assert {
    condition     = data.talosop_cluster_health.prod.healthy
    error_message = "Cluster prod is ${data.talosop_cluster_health.prod.summary}"
  }
}

# The running version of each machine.
output "kubernetes" {
  value = talosop_cluster.prod.observed_kubernetes_versions
}
