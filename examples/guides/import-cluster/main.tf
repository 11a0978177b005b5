terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The secrets of the cluster: YAML as `talosctl gen secrets` writes it. State gets none of them.
variable "secrets" {
  type      = string
  sensitive = true
}

variable "control_planes" {
  description = "Addresses of all control planes, by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers, by pool and name."
  type        = map(map(string))
}

provider "talosop" {
  clusters = { prod = { secrets = var.secrets } }
}

import {
  to = talosop_cluster.prod
  id = jsonencode({
    cluster       = "prod" # the name of the cluster, and its key in `clusters`
    control_plane = var.control_planes
    workers       = var.workers
  })
}
