# Several clusters, with addons that their labels select. Change a label, and the next apply installs or removes the addons.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "clusters" {
  description = "The clusters by name: endpoint, addresses of the control planes and workers by name, labels, variables for the values of addons, and own values by addon."
  type = map(object({
    endpoint       = string
    control_planes = map(string)
    workers        = optional(map(string), {})
    labels         = optional(map(string), {})
    variables      = optional(map(string), {})
    values         = optional(map(string), {})
  }))
}

variable "versions" {
  description = "Versions of Talos and Kubernetes of all clusters."
  type        = object({ talos = string, kubernetes = string })
  default     = { talos = "v1.14.1", kubernetes = "v1.37.0" }
}

variable "deletion_protection" {
  description = "Refuse to destroy the clusters and their secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source   = "../../modules/cluster"
  for_each = var.clusters

  name                = each.key
  endpoint            = each.value.endpoint
  versions            = var.versions
  control_planes      = { for name, address in each.value.control_planes : name => { address = address } }
  workers             = length(each.value.workers) == 0 ? {} : { general = { for name, address in each.value.workers : name => { address = address } } }
  deletion_protection = var.deletion_protection
}

module "addons" {
  source = "../../modules/addons"

  clusters = { for name, cluster in var.clusters : name => { labels = cluster.labels, variables = cluster.variables, values = cluster.values } }
  handles  = { for name, cluster in module.cluster : name => cluster.cluster }
  addons   = local.addons
}

output "releases" {
  value = module.addons.releases
}
