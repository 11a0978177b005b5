terraform {
  required_providers {
    talos   = { source = "siderolabs/talos" }
    talosop = { source = "talosop/talosop" }
  }
}

variable "secrets" {
  type      = string
  sensitive = true
}

variable "cluster" {
  description = "Handle of the cluster: its name, endpoint, Talos endpoints and versions."
  type        = any
}

variable "machines" {
  description = "Address and role of each machine, by its former key."
  type        = map(object({ address = string, role = string }))
}

variable "patches" {
  description = "Patches of each machine from its former configuration."
  type        = map(list(string))
  default     = {}
}

provider "talosop" {
  clusters = { (var.cluster.name) = { secrets = var.secrets } }
}

moved {
  from = talos_machine_configuration_apply.this
  to   = talosop_machine.this
}

resource "talosop_machine" "this" {
  for_each = var.machines

  cluster        = var.cluster
  name           = each.key
  role           = each.value.role
  address        = each.value.address
  talos_version  = var.cluster.talos_version
  install        = { disk = "/dev/sda" }
  config_patches = lookup(var.patches, each.key, [])
}
