data "talosop_etcd_members" "prod" {
  cluster = talosop_control_plane.prod.cluster
}

# Warns while etcd is unhealthy. A check does not stop a plan or an apply.
check "etcd" {
  assert {
    condition = data.talosop_etcd_members.prod.healthy
    error_message = "etcd of prod: ${jsonencode({
      cause  = data.talosop_etcd_members.prod.cause
      alarms = data.talosop_etcd_members.prod.alarms
      unwell = { for m in data.talosop_etcd_members.prod.members : m.id => m.errors if !m.healthy }
    })}"
  }
}

output "etcd_leader" {
  value = [for m in data.talosop_etcd_members.prod.members : m.name if m.leader]
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
