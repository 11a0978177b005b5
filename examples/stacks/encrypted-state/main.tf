# A stack with encrypted state and plans (encryption.tofu). Both contain the secrets of the cluster. Terraform does not support this and
# ignores encryption.tofu. With Terraform, keep secrets out of state with `clusters` of the provider.

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
  source = "../../modules/cluster"

  name                = "encrypted-state"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
