# Blue-green: a second cluster, restored from a snapshot of the first, takes over the traffic, and the first is destroyed. Both have the
# same secrets, because a snapshot works only with them. See the guide for the steps.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "clusters" {
  description = "One or two clusters by name, such as blue and green: endpoint, addresses of the machines by name, versions, and the key of the snapshot of the other cluster."
  type = map(object({
    endpoint       = string
    control_planes = map(string)
    workers        = optional(map(string), {})
    versions       = optional(object({ talos = string, kubernetes = string }), { talos = "v1.14.1", kubernetes = "v1.37.0" })
    restore        = optional(string)
  }))
}

variable "active" {
  description = "Name of the cluster that has the traffic. The other one may be destroyed."
  type        = string

  validation {
    condition     = contains(keys(var.clusters), var.active)
    error_message = "The active cluster must be one of clusters."
  }
}

variable "snapshot" {
  description = "Any text. A change takes a snapshot of every cluster."
  type        = string
  default     = "first"
}

variable "addons" {
  description = "Addons of both clusters, as in the module addons."
  type        = any
  default     = {}
}

variable "deletion_protection" {
  description = "Refuse to destroy the active cluster and the secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

locals {
  # A local folder. To use a bucket: s3 = { bucket = "prod-backups", region = "eu-central-1" }, here and in restore_from. The stack backup
  # also encrypts.
  folder = "${path.root}/backups"
}

resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_cluster" "this" {
  for_each = var.clusters

  mode                = "metal"
  name                = each.key
  isolated            = true # the machines of one cluster must not find the other one
  endpoint            = each.value.endpoint
  secrets             = talosop_secrets.this.bundle
  talos_version       = each.value.versions.talos
  kubernetes_version  = each.value.versions.kubernetes
  deletion_protection = var.deletion_protection && each.key == var.active

  allow_scheduling_on_control_planes = length(each.value.workers) == 0

  restore_from = each.value.restore == null ? null : { file = { path = "${local.folder}/${each.value.restore}" } }

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { for name, address in each.value.control_planes : name => { address = address } }
  }

  workers = length(each.value.workers) == 0 ? {} : {
    general = {
      install  = { disk = "/dev/sda" }
      machines = { for name, address in each.value.workers : name => { address = address } }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster ${self.name} is ${self.phase}. Apply again to continue."
    }
  }
}

resource "talosop_etcd_backup" "this" {
  for_each = var.clusters

  cluster  = talosop_cluster.this[each.key].cluster
  file     = { path = local.folder }
  triggers = { snapshot = var.snapshot }
}

module "addons" {
  source = "../../modules/addons"

  clusters = { for name in keys(var.clusters) : name => {} }
  handles  = { for name, cluster in talosop_cluster.this : name => cluster.cluster }
  addons   = { for name, addon in var.addons : name => merge(addon, { adopt = true }) } # the snapshot has the releases
}

# Stands for what moves the traffic, such as a DNS record or the targets of a load balancer. It follows the addons of the active cluster.
resource "terraform_data" "traffic" {
  input      = var.clusters[var.active].endpoint
  depends_on = [module.addons]
}

resource "talosop_kubeconfig_file" "this" {
  cluster = talosop_cluster.this[var.active].cluster
  path    = "${path.root}/kubeconfig"
}

output "snapshots" {
  description = "Keys of the newest snapshots by cluster, for restore of the other one."
  value       = { for name, backup in talosop_etcd_backup.this : name => backup.key }
}

output "traffic" {
  value = terraform_data.traffic.output
}
