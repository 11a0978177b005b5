# A cluster that survives the loss of a control plane. Three control planes share a virtual IP, so you need no load balancer. Pods reach
# the API through KubePrism, which needs neither.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "virtual_ip" {
  description = "A free address in the network of the control planes. No machine holds it while etcd has no quorum, so do not use it for the Talos API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use three or five."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by name."
  type        = map(string)
  default     = {}
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "ha"
  virtual_ip          = { address = var.virtual_ip, link = "eth0" }
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  workers             = { general = { for name, address in var.workers : name => { address = address } } }
  deletion_protection = var.deletion_protection
}

# Credentials for kubectl, valid for a day. An apply renews them when less than a third of that time is left.
resource "talosop_kubeconfig_file" "this" {
  cluster = module.cluster.cluster
  path    = "${path.root}/kubeconfig"
}

output "nodes" {
  value = module.cluster.nodes
}
