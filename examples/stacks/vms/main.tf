# Virtual machines and their cluster in one apply. The addresses and UUIDs come from the module that creates the VMs, so you write them
# once, and talosop refuses other hardware.
#
# The module `vms` is the cloud. stand-in uses terraform_data instead of a cloud. proxmox, libvirt, hetzner and aws have the same variable
# and the same outputs: change `source`. In each of them, create_before_destroy makes Terraform destroy a removed or replaced VM after
# the cluster has changed. By then its machine was drained, has left etcd and is reset.

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
  description = "URL of the Kubernetes API at a load balancer or a DNS name."
  type        = string
}

variable "vms" {
  description = "The VMs by name, with their roles. The other attributes depend on the cloud."
  type        = any
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "vms" {
  source = "./stand-in"

  vms = var.vms
}

locals {
  # Every plan knows the names, so it shows which machines join and leave, even if addresses of new VMs are unknown.
  machines = {
    for role in ["controlplane", "worker"] : role => {
      for name, vm in var.vms : name => module.vms.machines[name] if vm.role == role
    }
  }
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "vms"
  endpoint            = var.endpoint
  control_planes      = local.machines["controlplane"]
  workers             = { general = local.machines["worker"] }
  install             = module.vms.install
  platform            = module.vms.platform
  appear_within       = "10m" # new VMs may still boot when the create of the cluster starts
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
