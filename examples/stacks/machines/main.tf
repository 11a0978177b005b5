# One resource for each machine, from one map, for machines that differ in disks, labels or versions. The plan shows each machine
# separately. To add a machine, add a line. If you remove a line, the apply drains the machine, removes it from etcd and resets it.

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

variable "machines" {
  description = "All machines by name."
  type = map(object({
    role          = string # controlplane or worker
    address       = string
    disk          = optional(string, "/dev/sda")
    talos_version = optional(string, "v1.14.1")
    labels        = optional(map(string), {})
  }))
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

locals {
  control_planes = { for name, machine in var.machines : name => machine if machine.role == "controlplane" }
  workers        = { for name, machine in var.machines : name => machine if machine.role == "worker" }

  # The cluster handle, which connects the machines. talosop_cluster and talosop_control_plane export the same object.
  cluster = {
    name               = "machines"
    endpoint           = var.endpoint
    secrets            = talosop_secrets.this.bundle
    talos_endpoints    = values(local.control_planes)[*].address # list all control planes: talosop checks them before it bootstraps or ends etcd
    kubernetes_version = "v1.37.0"
    version_contract   = "v1.13"
  }
}

resource "talosop_machine" "control_plane" {
  for_each = local.control_planes

  cluster             = local.cluster
  name                = each.key
  role                = "controlplane"
  address             = each.value.address
  bootstrap           = each.key == sort(keys(local.control_planes))[0] # exactly one bootstraps etcd, the others join
  talos_version       = each.value.talos_version
  install             = { disk = each.value.disk }
  labels              = each.value.labels
  deletion_protection = var.deletion_protection

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "${self.name} is ${self.phase}. Apply again to continue."
    }
  }
}

# Workers wait for a cluster. Without depends_on, more than ten of them would use all of -parallelism, and the control planes
# would not start.
resource "talosop_machine" "worker" {
  for_each   = local.workers
  depends_on = [talosop_machine.control_plane]

  cluster             = local.cluster
  name                = each.key
  role                = "worker"
  address             = each.value.address
  talos_version       = each.value.talos_version
  install             = { disk = each.value.disk }
  labels              = each.value.labels
  deletion_protection = var.deletion_protection

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "${self.name} is ${self.phase}. Apply again to continue."
    }
  }
}

output "phases" {
  value = { for name, machine in merge(talosop_machine.control_plane, talosop_machine.worker) : name => machine.phase }
}
