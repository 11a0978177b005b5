# A root module that Atlantis plans and applies for pull requests. The server configures the backend (server/repos.yaml), because its
# checkouts are temporary.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }

  backend "local" {}
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

variable "workers" {
  description = "Addresses of the workers by name. The apply wipes a removed worker, and the policy requires an approval for this."
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
