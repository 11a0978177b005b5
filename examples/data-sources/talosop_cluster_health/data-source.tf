# Reads the cluster in every plan, and after an apply that changes it.
data "talosop_cluster_health" "prod" {
  cluster = talosop_control_plane.prod.cluster
}

# Warns while the cluster is unhealthy. A check does not stop a plan or an apply.
check "prod" {
  assert {
    condition     = data.talosop_cluster_health.prod.healthy
    error_message = "Cluster prod is ${data.talosop_cluster_health.prod.summary}"
  }
}

# The same for selected conditions.
check "etcd" {
  assert {
    condition = alltrue([
      for c in data.talosop_cluster_health.prod.conditions : c.status == "True" if startswith(c.name, "Etcd")
    ])
    error_message = "etcd of prod: ${join("; ", [
      for c in data.talosop_cluster_health.prod.conditions : c.reason if startswith(c.name, "Etcd") && c.status != "True"
    ])}"
  }
}

output "conditions" {
  value = { for c in data.talosop_cluster_health.prod.conditions : c.name => c.status }
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
