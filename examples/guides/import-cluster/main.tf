terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The secrets of the cluster: YAML from `talosctl gen secrets`. State does not contain them.
variable "secrets" {
  type      = string
  sensitive = true
}

variable "control_planes" {
  description = "Addresses of all control planes by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by pool and name."
  type        = map(map(string))
}

# The alias is required: without one, Terraform 1.16 does not find the provider for a resource that the configuration does not contain yet.
provider "talosop" {
  alias    = "prod"
  clusters = { prod = { secrets = var.secrets } }
}

import {
  provider = talosop.prod
  to       = talosop_cluster.prod
  id = jsonencode({
    cluster       = "prod" # the name of the cluster and its key in `clusters`
    control_plane = var.control_planes
    workers       = var.workers
  })
}
