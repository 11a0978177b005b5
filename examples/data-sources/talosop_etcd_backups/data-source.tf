resource "talosop_secrets" "prod" {}

locals {
  name     = "prod"
  endpoint = "https://10.0.0.10:6443"
  bucket   = { bucket = "prod-backups", region = "eu-central-1" }
}

# The snapshots of the cluster in the bucket. The handle is written by hand, so you can restore a cluster that no longer exists.
data "talosop_etcd_backups" "prod" {
  cluster = {
    name               = local.name
    endpoint           = local.endpoint
    secrets            = talosop_secrets.prod.bundle
    kubernetes_version = "v1.37.0"
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

# Warns if there is no snapshot of the last two days. A check does not stop a plan or an apply.
check "backups" {
  assert {
    condition = anytrue([
      for b in data.talosop_etcd_backups.prod.backups : b.restorable && timecmp(timeadd(b.time, "48h"), plantimestamp()) > 0
    ])
    error_message = "etcd of ${local.name} has no backup of the last two days."
  }
}

variable "restore" {
  description = "Whether to restore the newest snapshot. Set it to false after the restore."
  type        = bool
  default     = false
}

variable "identity" {
  description = "Secret key from age-keygen, only for a restore."
  type        = string
  default     = null
  ephemeral   = true
}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = local.name
  endpoint           = local.endpoint
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
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
