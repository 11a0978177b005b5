# A module for a whole cluster with a few variables, which the example stacks share. Copy and adapt it for your clusters.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_cluster" "this" {
  mode                   = "metal"
  name                   = var.name
  endpoint               = var.virtual_ip == null ? var.endpoint : "https://${var.virtual_ip.address}:6443"
  secrets                = talosop_secrets.this.bundle
  talos_version          = var.versions.talos
  kubernetes_version     = var.versions.kubernetes
  cni                    = var.cni
  air_gapped             = var.air_gapped
  registries             = var.registries
  cluster_config_patches = var.config_patches
  deletion_protection    = var.deletion_protection
  appear_within          = var.appear_within

  # Without workers, the control planes run the pods.
  allow_scheduling_on_control_planes = length(flatten([for pool in var.workers : keys(pool)])) == 0

  # A separate object, because state does not contain the keys that open the snapshot.
  restore_from = var.restore_from == null ? null : {
    file          = var.restore_from.file
    s3            = var.restore_from.s3
    sha256        = var.restore_from.sha256
    identities_wo = var.restore_identities
  }

  control_plane = {
    install  = var.install
    platform = var.platform
    machines = var.control_planes
    vip      = var.virtual_ip # null if the endpoint is a load balancer
  }

  workers = {
    for pool, machines in var.workers : pool => {
      install  = var.install
      platform = var.platform
      machines = machines
    }
  }

  # State stores an incomplete create, and the next apply continues it. This postcondition makes the run fail.
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
