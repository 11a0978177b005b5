# Worker pools that join a cluster of another root module through its handle.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "cluster" {
  description = "The cluster handle, an output of the module that creates the cluster."
  type        = any
  sensitive   = true
}

variable "pools" {
  description = "Addresses of the machines by pool and name."
  type        = map(map(string))
}

variable "talos_version" {
  description = "Talos version of the machines."
  type        = string
  default     = "v1.14.1"
}

resource "talosop_worker" "this" {
  for_each = var.pools

  name          = each.key
  cluster       = var.cluster
  talos_version = var.talos_version
  install       = { disk = "/dev/sda" }
  machines      = { for name, address in each.value : name => { address = address } }

  # A pool changes a quarter of its machines at a time.
  max_unavailable = "25%"

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The pool ${self.name} is ${self.phase}. Apply again to continue."
    }
  }
}

output "phases" {
  description = "Phase of each pool."
  value       = { for name, pool in talosop_worker.this : name => pool.phase }
}
