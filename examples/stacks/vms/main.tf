# Virtual machines and the cluster on them, in one apply: their addresses and UUIDs come from whoever makes them, so that nothing is
# written down twice and no other hardware is taken for them.
#
# The module `vms` is the cloud. stand-in has terraform_data in place of one; proxmox, libvirt, hetzner and aws beside it have the
# same variable and the same outputs: change `source`. In each of them create_before_destroy has a VM that is taken out, or replaced,
# end after the cluster has changed: its machine was drained, has left etcd and is reset by then.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "endpoint" {
  description = "URL of the Kubernetes API: of a load balancer before the control planes, or a DNS name."
  type        = string
}

variable "vms" {
  description = "The VMs by name, with their roles; what else the cloud needs to know of them differs."
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
  # The names are known in every plan, and so the plan says which machines come and go, though addresses of new VMs are not known yet.
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
  appear_within       = "10m" # VMs that this apply makes still boot when the cluster begins
  deletion_protection = var.deletion_protection
}

output "nodes" {
  value = module.cluster.nodes
}
