# Imports a cluster that another tool created, or whose state was lost. Put the secrets of the cluster into secrets.yaml next to this
# file, in the format of `talosctl gen secrets`. The guide to imports lists other sources. The first plan lists the fields of the
# machines that this configuration does not have. talosop sends nothing to the machines before you apply.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "cluster_name" {
  type = string
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by pool and name."
  type        = map(map(string))
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

import {
  to = module.cluster.talosop_secrets.this
  id = "secrets.yaml"
}

import {
  to = module.cluster.talosop_cluster.this
  id = jsonencode({ secrets = "secrets.yaml", control_plane = var.control_planes, workers = var.workers })
}

module "cluster" {
  source = "../../modules/cluster"

  name                = var.cluster_name
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  workers             = { for pool, machines in var.workers : pool => { for name, address in machines : name => { address = address } } }
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
