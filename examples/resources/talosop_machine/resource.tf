variable "machines" {
  description = "All machines by name: the control planes and the workers."
  type = map(object({
    role    = string # controlplane or worker
    address = string
  }))
}

resource "talosop_secrets" "prod" {}

locals {
  control_planes = { for name, machine in var.machines : name => machine.address if machine.role == "controlplane" }
  workers        = { for name, machine in var.machines : name => machine.address if machine.role == "worker" }

  # A cluster handle written by hand. With talosop_control_plane, use talosop_control_plane.prod.cluster instead.
  cluster = {
    name               = "prod"
    endpoint           = "https://10.0.0.10:6443"
    secrets            = talosop_secrets.prod.bundle
    talos_endpoints    = values(local.control_planes) # list all control planes: talosop checks them before it bootstraps or ends etcd
    kubernetes_version = "v1.37.0"
    version_contract   = "v1.13"
  }
}

resource "talosop_machine" "control_plane" {
  for_each = local.control_planes

  cluster       = local.cluster
  name          = each.key
  role          = "controlplane"
  address       = each.value
  bootstrap     = each.key == "cp-1" # exactly one control plane bootstraps etcd, the others join
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "${self.name} is ${self.phase}. Apply again to continue."
    }
  }
}

resource "talosop_machine" "worker" {
  for_each   = local.workers
  depends_on = [talosop_machine.control_plane] # otherwise more than ten workers would use all of -parallelism

  cluster       = local.cluster
  name          = each.key
  role          = "worker"
  address       = each.value
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }
}
