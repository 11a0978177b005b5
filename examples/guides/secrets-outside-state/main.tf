terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# YAML from `talosctl gen secrets`, from a vault. Every plan and apply needs it, and none stores it.
variable "secrets" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "control_planes" {
  description = "Addresses of the control planes by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by name."
  type        = map(string)
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "new_cluster" {
  description = "Set it to true for the apply that creates the cluster, because these secrets have no cluster yet."
  type        = bool
  default     = false
}

provider "talosop" {
  clusters = {
    prod = { secrets = var.secrets }
  }
}

resource "talosop_control_plane" "this" {
  mode               = "metal"
  name               = "prod" # selects its secrets in the provider block
  endpoint           = var.endpoint
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }
  machines           = { for name, address in var.control_planes : name => { address = address } }
  allow_bootstrap    = var.new_cluster
}

resource "talosop_worker" "this" {
  cluster       = talosop_control_plane.this.cluster # a handle without secrets
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }
  machines      = { for name, address in var.workers : name => { address = address } }
}

resource "talosop_kubeconfig_file" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "${path.root}/kubeconfig"
}
