# A cluster whose workers are repaired without a person. A schedule runs repair.sh, which plans with `repair = true`, and applies the
# plan only if repair.rego finds nothing in it but a repair. For your own plans and applies, leave the variable alone.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "repair" {
  description = "Whether to plan repairs. repair.sh sets it."
  type        = bool
  default     = false
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "versions" {
  description = "Versions of Talos and Kubernetes."
  type        = object({ talos = string, kubernetes = string })
  default     = { talos = "v1.14.1", kubernetes = "v1.37.0" }
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by name."
  type        = map(string)
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

locals {
  name = "repair"

  # A handle without a reference to talosop_cluster, because a repair comes before the cluster's own changes.
  handle = {
    name            = local.name
    endpoint        = var.endpoint
    secrets         = talosop_secrets.this.bundle
    talos_endpoints = values(var.control_planes)
  }

  # The workers of this cluster that are not Ready. How long they have been so is for the policy.
  broken = !var.repair ? {} : try({
    for name, node in data.talosop_cluster_health.this[0].nodes : name => node.last_change
    if node.role == "worker" && !node.ready && !contains(keys(data.talosop_cluster_health.this[0].unmanaged), name)
  }, {}) # an API that does not answer lists none
}

data "talosop_cluster_health" "this" {
  count   = var.repair ? 1 : 0
  cluster = local.handle
}

# Wipes EPHEMERAL and reboots the machine, which rejoins with its configuration. When its node is Ready, the next run of repair.sh
# removes the instance from the state.
resource "talosop_machine_reset" "repair" {
  for_each = local.broken

  cluster  = local.handle
  machines = [each.key]
  triggers = { not_ready_since = each.value }

  lifecycle {
    postcondition {
      condition     = self.finished_at != null
      error_message = "${each.key} did not return after its reset."
    }
  }
}

resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_cluster" "this" {
  mode                = "metal"
  name                = local.name
  endpoint            = var.endpoint
  secrets             = talosop_secrets.this.bundle
  talos_version       = var.versions.talos
  kubernetes_version  = var.versions.kubernetes
  deletion_protection = var.deletion_protection

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { for name, address in var.control_planes : name => { address = address } }
  }

  workers = {
    general = {
      install  = { disk = "/dev/sda" }
      machines = { for name, address in var.workers : name => { address = address } }
    }
  }

  # The update waits for machines that are not Ready, so they are repaired first.
  depends_on = [talosop_machine_reset.repair]

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
