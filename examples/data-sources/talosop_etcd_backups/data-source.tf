resource "talosop_secrets" "prod" {}

locals {
  name     = "prod"
  endpoint = "https://10.0.0.10:6443"
  bucket   = { bucket = "prod-backups", region = "eu-central-1" }
}

# What the bucket holds of the cluster. The handle is written by hand, so that a cluster that is gone can begin with what is found.
data "talosop_etcd_backups" "prod" {
  cluster = {
    name               = local.name
    endpoint           = local.endpoint
    secrets            = talosop_secrets.prod.bundle
    kubernetes_version = "v1.36.3"
  }

  s3 = merge(local.bucket, { prefix = "talos" })
}

output "backups" {
  value = [for b in data.talosop_etcd_backups.prod.backups : {
    key  = b.key
    time = b.time
    size = b.size
    note = b.restorable ? "can be restored" : b.reason
  }]
}

# Warns when there is no snapshot of the last two days; a check stops neither plan nor apply.
check "backups" {
  assert {
    condition = anytrue([
      for b in data.talosop_etcd_backups.prod.backups : b.restorable && timecmp(timeadd(b.time, "48h"), plantimestamp()) > 0
    ])
    error_message = "etcd of ${local.name} was not backed up for two days."
  }
}

variable "restore" {
  description = "Whether the cluster is to come back with its newest snapshot. Switch it off again after the restore."
  type        = bool
  default     = false
}

variable "identity" {
  description = "What age-keygen wrote; only for a restore."
  type        = string
  default     = null
  ephemeral   = true
}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = local.name
  endpoint           = local.endpoint
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.36.3"
  install            = { disk = "/dev/sda" }

  restore_from = var.restore ? {
    s3            = merge(local.bucket, { key = data.talosop_etcd_backups.prod.latest })
    identities_wo = var.identity == null ? null : [var.identity]
  } : null

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}
