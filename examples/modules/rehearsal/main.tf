# A copy of a cluster in pods, from its newest snapshot, for a change to try out. Without `change`, it has the versions that
# the snapshot was taken with, and `problems` are what `planned` would run into. With `change`, `planned` is applied to it as
# to the cluster. It does not touch the cluster.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

data "talosop_etcd_backups" "this" {
  cluster = { name = var.cluster.name, endpoint = var.cluster.endpoint, secrets = var.secrets }
  s3      = var.backups.s3
  file    = var.backups.file

  lifecycle {
    postcondition {
      condition     = self.latest != null
      error_message = "No snapshot can be restored: ${jsonencode({ for b in self.backups : b.key => b.reason })}"
    }
  }
}

locals {
  # A newer snapshot between the two applies must not replace the one that was restored.
  key      = coalesce(var.snapshot, data.talosop_etcd_backups.this.latest)
  snapshot = one([for b in data.talosop_etcd_backups.this.backups : b if b.key == local.key])

  # Pods have neither the disks nor the links of the machines.
  patches = provider::talosop::without_hardware(concat(var.config_patches, var.change ? var.planned.config_patches : []))

  # Restored Services and Flannel work in the networks of the cluster only. On metal, their defaults are others than in pods.
  metal         = var.cluster.mode == "metal"
  pod_cidrs     = local.metal && var.cluster.pod_cidrs == null ? ["10.244.0.0/16"] : var.cluster.pod_cidrs
  service_cidrs = local.metal && var.cluster.service_cidrs == null ? ["10.96.0.0/12"] : var.cluster.service_cidrs
}

resource "talosop_cluster" "this" {
  mode                   = "container"
  isolated               = true
  name                   = var.name
  secrets                = var.secrets
  talos_version          = coalesce(var.change ? var.planned.talos : null, local.snapshot.talos_version)
  kubernetes_version     = coalesce(var.change ? var.planned.kubernetes : null, local.snapshot.kubernetes_version)
  cni                    = var.cni
  pod_cidrs              = local.pod_cidrs
  service_cidrs          = local.service_cidrs
  dns_domain             = var.cluster.dns_domain
  cluster_config_patches = local.patches.patches
  deletion_protection    = false
  health_checks          = var.health_checks
  timeouts               = { create = var.timeout, update = var.timeout }

  host          = var.host
  control_plane = { replicas = var.control_planes }
  workers       = var.workers == 0 ? null : { worker = { replicas = var.workers } }

  # A separate object, because state does not contain the keys that open the snapshot.
  restore_from = {
    s3 = var.backups.s3 == null ? null : {
      bucket     = var.backups.s3.bucket
      key        = local.key
      region     = var.backups.s3.region
      endpoint   = var.backups.s3.endpoint
      ca         = var.backups.s3.ca
      path_style = var.backups.s3.path_style
      profile    = var.backups.s3.profile
    }
    file          = var.backups.file == null ? null : { path = "${var.backups.file.path}/${local.key}" }
    identities_wo = var.identities
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The rehearsed cluster is ${self.phase}. See the warning of the apply."
    }
  }
}

# The addons of the change, with the versions that it wants. Those of the snapshot are in the restored cluster already.
resource "talosop_addon" "this" {
  for_each = var.change ? var.planned.addons : {}

  cluster    = talosop_cluster.this.cluster
  name       = each.key
  namespace  = each.value.namespace
  repository = each.value.repository
  chart      = each.value.chart
  version    = each.value.version
  values     = each.value.values
}

data "talosop_cluster_health" "this" {
  cluster    = talosop_cluster.this.cluster
  depends_on = [talosop_cluster.this, talosop_addon.this]
}

# Before the change, this lists what it removes and what blocks it. After it, it lists what is left.
data "talosop_upgrade_checks" "this" {
  cluster            = talosop_cluster.this.cluster
  kubernetes_version = var.planned.kubernetes
  extensions         = var.planned.extensions
  depends_on         = [talosop_cluster.this, talosop_addon.this]
}
