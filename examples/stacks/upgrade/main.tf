# Upgrades, step by step: raise one of the versions in versions.auto.tfvars, read the operations of the plan, and apply. A Talos upgrade
# drains and reboots machines one after the other. A Kubernetes upgrade needs no reboot. You can skip minor versions: talosop upgrades
# through the intermediate versions in `path`.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "versions" {
  description = "The present versions, and the Talos version of a later upgrade for `path`."
  type        = object({ talos = string, kubernetes = string, talos_next = optional(string) })
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
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

# The Talos releases on the upgrade path, before the upgrade starts.
output "path" {
  value = var.versions.talos_next == null ? [] : provider::talosop::upgrade_path(var.versions.talos, var.versions.talos_next)
}

# The machines in the last refresh.
output "nodes" {
  value = module.cluster.nodes
}
