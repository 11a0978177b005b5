# Upgrades, step by step: raise one of the versions in versions.auto.tfvars, read the operations of the plan, and apply. Machines
# are drained and rebooted one after the other; Kubernetes changes without a reboot. A step may be larger: talosop passes the versions
# between by itself, as `path` says.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "versions" {
  description = "What runs, and the Talos that a later step is to go to, which `path` is about."
  type        = object({ talos = string, kubernetes = string, talos_next = optional(string) })
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name; an odd number."
  type        = map(string)
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "upgrade"
  endpoint            = var.endpoint
  versions            = var.versions
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
}

# The Talos releases that an upgrade passes, before it is begun.
output "path" {
  value = var.versions.talos_next == null ? [] : provider::talosop::upgrade_path(var.versions.talos, var.versions.talos_next)
}

# What the last refresh saw.
output "nodes" {
  value = module.cluster.nodes
}
