variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "machines" {
  description = "Addresses of the workers by name."
  type        = map(string)
}

variable "monitoring_token" {
  description = "Token for the monitoring system."
  type        = string
  sensitive   = true
}

resource "talosop_worker" "storage" {
  cluster       = var.cluster
  talos_version = "v1.14.1"
  machines      = { for name, address in var.machines : name => { address = address } }
  install       = { disk = "/dev/sda" }

  health_checks = {
    # Rook Ceph has all replicas.
    ceph = {
      timeout = "30m"
      object = {
        api_version = "ceph.rook.io/v1"
        kind        = "CephCluster"
        namespace   = "rook-ceph"
        name        = "rook-ceph"
        jsonpath    = "{.status.ceph.health}"
        value       = "HEALTH_OK"
      }
    }

    # Every Longhorn volume in use has all its replicas.
    longhorn = {
      timeout = "30m"
      object = {
        api_version = "longhorn.io/v1beta2"
        kind        = "Volume"
        namespace   = "longhorn-system"
        cel         = "object.status.state != 'attached' || object.status.robustness == 'healthy'"
      }
    }

    nodes = {
      object = { api_version = "v1", kind = "Node", condition = "Ready" }
    }

    monitoring = {
      http = {
        url      = "https://monitoring.example.org/api/healthy"
        contains = "no alerts"
        headers  = { Authorization = "Bearer ${var.monitoring_token}" }
      }
    }

    database = {
      timeout = "10m"
      job = yamlencode({
        apiVersion = "batch/v1"
        kind       = "Job"
        metadata   = { name = "database-ready", namespace = "database" }
        spec = {
          backoffLimit = 0
          template = { spec = {
            restartPolicy = "Never"
            containers = [{
              name    = "ask", image = "postgres:18",
              command = ["pg_isready", "--host=primary"]
            }]
          } }
        }
      })
    }
  }
}
