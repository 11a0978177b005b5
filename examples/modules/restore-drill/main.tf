# Restores the newest snapshot of a cluster into throwaway pods, counts its objects, restarts every member, and counts again.
# Destroy it afterwards. It does not touch the cluster.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The snapshots at the time of the plan.
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
  snapshot = one([for b in data.talosop_etcd_backups.this.backups : b if b.key == data.talosop_etcd_backups.this.latest])

  # Restored Services and Flannel work in the networks of the cluster only. On metal, their defaults are others than in pods.
  metal         = var.cluster.mode == "metal"
  pod_cidrs     = local.metal && var.cluster.pod_cidrs == null ? ["10.244.0.0/16"] : var.cluster.pod_cidrs
  service_cidrs = local.metal && var.cluster.service_cidrs == null ? ["10.96.0.0/12"] : var.cluster.service_cidrs
}

# When the drill began. The recovery time counts from here.
resource "terraform_data" "started" {
  input = timestamp()

  lifecycle {
    ignore_changes = [input]
  }
}

# The snapshot in pods that connect only to each other, with the versions that it was taken with. Without workers, pods of
# the restored workloads have no node, so they do nothing to the systems that they manage.
resource "talosop_cluster" "this" {
  depends_on = [terraform_data.started]

  mode                   = "container"
  isolated               = true
  name                   = var.name
  secrets                = var.secrets
  talos_version          = coalesce(var.versions.talos, local.snapshot.talos_version)
  kubernetes_version     = coalesce(var.versions.kubernetes, local.snapshot.kubernetes_version)
  cni                    = var.cni
  pod_cidrs              = local.pod_cidrs
  service_cidrs          = local.service_cidrs
  dns_domain             = var.cluster.dns_domain
  cluster_config_patches = var.config_patches
  deletion_protection    = false

  host          = var.host
  control_plane = { replicas = var.control_planes }

  # A separate object, because state does not contain the keys that open the snapshot.
  restore_from = {
    s3 = var.backups.s3 == null ? null : {
      bucket     = var.backups.s3.bucket
      key        = local.snapshot.key
      region     = var.backups.s3.region
      endpoint   = var.backups.s3.endpoint
      ca         = var.backups.s3.ca
      path_style = var.backups.s3.path_style
      profile    = var.backups.s3.profile
    }
    file          = var.backups.file == null ? null : { path = "${var.backups.file.path}/${local.snapshot.key}" }
    identities_wo = var.identities
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The restored cluster is ${self.phase}. See the warning of the apply."
    }
  }
}

resource "terraform_data" "recovered" {
  depends_on = [talosop_cluster.this]
  input      = timestamp()

  lifecycle {
    ignore_changes = [input]
  }
}

# A snapshot of the restored cluster has the number of its objects. The destroy deletes it.
resource "talosop_etcd_backup" "restored" {
  depends_on = [terraform_data.recovered]

  cluster           = talosop_cluster.this.cluster
  file              = { path = var.scratch }
  encryption        = var.recipients == null ? null : { recipients = var.recipients }
  delete_on_destroy = true
}

# Members that lost a part of what was restored show it after they started again.
resource "talosop_rolling_restart" "this" {
  cluster  = talosop_cluster.this.cluster
  drain    = { enabled = false }
  triggers = { restored = talosop_etcd_backup.restored.key }

  lifecycle {
    postcondition {
      condition     = self.finished_at != null
      error_message = "These members did not restart: ${join(", ", coalesce(self.left, []))}. See the warning of the apply."
    }
  }
}

resource "talosop_etcd_backup" "restarted" {
  cluster           = talosop_cluster.this.cluster
  file              = { path = "${var.scratch}/restarted" }
  encryption        = var.recipients == null ? null : { recipients = var.recipients }
  delete_on_destroy = true
  triggers          = { restarted = talosop_rolling_restart.this.finished_at }
}

locals {
  # Fewer objects of a resource than in the snapshot. More are normal: controllers of the restored cluster work.
  missing = {
    for resource, number in coalesce(local.snapshot.objects, {}) : resource => {
      snapshot  = number
      restored  = lookup(talosop_etcd_backup.restored.objects, resource, 0)
      restarted = lookup(talosop_etcd_backup.restarted.objects, resource, 0)
    }
    if !contains(var.transient, resource) && number > min(lookup(talosop_etcd_backup.restored.objects, resource, 0),
    lookup(talosop_etcd_backup.restarted.objects, resource, 0))
  }

  times = {
    snapshot  = local.snapshot.time
    started   = terraform_data.started.output
    recovered = terraform_data.recovered.output
  }

  # Seconds of a time, for differences: the days by the Julian day number, which holds until 2099.
  seconds = {
    for name, time in local.times : name => 86400 * (
      367 * formatdate("YYYY", time) - floor(7 * (formatdate("YYYY", time) + floor((formatdate("M", time) + 9) / 12)) / 4)
      + floor(275 * formatdate("M", time) / 9) + formatdate("D", time)
    ) + 3600 * formatdate("h", time) + 60 * formatdate("m", time) + formatdate("s", time)
  }

  rpo_seconds = local.seconds.started - local.seconds.snapshot
  rto_seconds = local.seconds.recovered - local.seconds.started
}

# The apply fails if the drill did. The outputs tell why.
resource "terraform_data" "passed" {
  lifecycle {
    precondition {
      condition     = length(coalesce(local.snapshot.objects, {})) > 0
      error_message = "The record of the snapshot has no numbers of objects to compare with."
    }

    precondition {
      condition     = length(local.missing) == 0
      error_message = "Objects are missing after the restore: ${jsonencode(local.missing)}"
    }

    precondition {
      condition     = var.limits.rpo_seconds == null ? true : local.rpo_seconds <= var.limits.rpo_seconds
      error_message = "The newest snapshot was ${local.rpo_seconds} seconds old."
    }

    precondition {
      condition     = var.limits.rto_seconds == null ? true : local.rto_seconds <= var.limits.rto_seconds
      error_message = "The restore took ${local.rto_seconds} seconds."
    }
  }
}
