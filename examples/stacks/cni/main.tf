# A cluster whose pod network comes from a chart, in the same apply. Nodes are not Ready without the network. talosop_cluster does not
# wait for them, but the addon does, because its pods have to run. See examples/guides/addons for the values of Cilium and Calico.

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

variable "network" {
  description = "Chart of the network plugin, and its values."
  type        = object({ chart = string, repository = optional(string), version = optional(string), values = optional(any) })
  default     = { repository = "https://helm.cilium.io", chart = "cilium", version = "1.18.3" }
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "cni"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  cni                 = { name = "none" }
  deletion_protection = var.deletion_protection
}

resource "talosop_addon" "network" {
  cluster    = module.cluster.cluster
  name       = "network"
  namespace  = "kube-system"
  repository = var.network.repository
  chart      = var.network.chart
  version    = var.network.version
  values     = var.network.values == null ? null : [yamlencode(var.network.values)]
}

# Add this to further addons: depends_on = [talosop_addon.network].

output "network" {
  value = "${talosop_addon.network.chart_name} ${talosop_addon.network.chart_version}: ${talosop_addon.network.status}"
}
