# The first of two root modules: the control plane, which few people may change. It exports the cluster handle for the others.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
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
  source = "../../../modules/cluster"

  name                = "modular"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
}

# The handle contains the secrets of the cluster: anyone who can read this state is its administrator. To avoid this, put the secrets
# into `clusters` of the provider in both root modules.
output "cluster" {
  value     = module.cluster.cluster
  sensitive = true
}
