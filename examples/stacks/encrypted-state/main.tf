# A stack whose state and plans OpenTofu encrypts (encryption.tofu): the secrets of the cluster are in both, and in clear text else.
# Terraform, which cannot do that, does not read encryption.tofu; there `clusters` of the provider keeps secrets out of state.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
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

  name                = "encrypted-state"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
