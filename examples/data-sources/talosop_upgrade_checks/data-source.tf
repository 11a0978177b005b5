data "talosop_upgrade_checks" "next" {
  cluster            = talosop_control_plane.prod.cluster
  kubernetes_version = "v1.37.0"
  extensions         = ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"]
}

# Warns before the upgrade. A check does not stop a plan or an apply.
check "upgrade" {
  assert {
    condition     = data.talosop_upgrade_checks.next.complete && length(data.talosop_upgrade_checks.next.problems) == 0
    error_message = jsonencode(data.talosop_upgrade_checks.next.problems)
  }
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
