# A root module of a repository whose pull requests Atlantis plans and applies. Where the state is, the server says (server/repos.yaml):
# its checkouts come and go.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }

  backend "local" {}
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name; an odd number."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by name. One that is taken out is wiped, which the policy has somebody approve."
  type        = map(string)
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "atlantis"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  workers             = { general = { for name, address in var.workers : name => { address = address } } }
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
