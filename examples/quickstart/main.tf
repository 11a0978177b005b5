# A cluster from machines in maintenance mode.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# Terraform shows no progress of a resource. Follow an apply with `tail -f progress.jsonl.txt`.
provider "talosop" {
  progress_file = "${path.root}/progress.jsonl"
}

# The PKI and the tokens of the cluster, created once. All machine configurations and credentials use them.
resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_control_plane" "this" {
  mode                   = "metal"
  name                   = var.cluster_name
  endpoint               = var.endpoint
  secrets                = talosop_secrets.this.bundle
  talos_version          = var.talos_version
  kubernetes_version     = var.kubernetes_version
  install                = { disk = var.install_disk }
  cluster_config_patches = var.config_patches
  deletion_protection    = var.deletion_protection

  # Without workers, the control planes run the pods.
  allow_scheduling_on_control_planes = length(var.workers) == 0 ? true : null

  machines = { for name, address in var.control_planes : name => { address = address } }

  # State stores an incomplete create, and the next apply continues it. This postcondition makes the run fail.
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
  install       = { disk = var.install_disk }

  machines = { for name, address in var.workers : name => { address = address } }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The workers are ${self.phase}. Apply again to continue."
    }
  }
}

# Credentials for kubectl, valid for a day. An apply renews them when less than a third of that time is left.
resource "talosop_kubeconfig_file" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "${path.root}/kubeconfig"
}
