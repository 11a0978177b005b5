# The cluster of the tutorial.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# An apply writes what it does to this file, for `tail -f`, and a page for the browser next to it.
provider "talosop" {
  progress_file = "progress.jsonl"
}

# machines.auto.tfvars.json has the values of the first three variables.
variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the machines for workers by name."
  type        = map(string)
}

# terraform.tfvars has the values of the others.
variable "pool" {
  description = "Names of the workers that belong to the cluster."
  type        = set(string)
  default     = ["worker-1"]
}

variable "talos_version" {
  description = "Talos version of the machines."
  type        = string
  default     = "v1.14.1"
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets."
  type        = bool
  default     = true
}

# The keys of the cluster, created once.
resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_control_plane" "this" {
  mode                = "metal"
  name                = "tutorial"
  endpoint            = var.endpoint
  secrets             = talosop_secrets.this.bundle
  talos_version       = var.talos_version
  kubernetes_version  = "v1.37.0"
  install             = { disk = "/dev/sda" }
  deletion_protection = var.deletion_protection

  machines = { for name, address in var.control_planes : name => { address = address } }

  # Each file in the folder patches changes the configuration of all machines, workers included.
  cluster_config_patches = [for name in fileset(path.module, "patches/*.yaml") : file(name)]

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is ${self.phase}. Apply again to continue."
    }
  }
}

resource "talosop_worker" "this" {
  cluster       = talosop_control_plane.this.cluster
  talos_version = var.talos_version
  install       = { disk = "/dev/sda" }

  machines = { for name, address in var.workers : name => { address = address } if contains(var.pool, name) }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The workers are ${self.phase}. Apply again to continue."
    }
  }
}

# Credentials for kubectl, valid for a day.
resource "talosop_kubeconfig_file" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "${path.root}/kubeconfig"
}
