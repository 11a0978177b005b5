terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# Only the provider has the credentials of the bucket. They are in neither state nor plan.
variable "bucket_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}

provider "talosop" {
  s3 = {
    access_key_id     = var.bucket_key.id
    secret_access_key = var.bucket_key.secret
  }
}

# Key of the snapshot to restore. Empty if you do not restore.
variable "restore" {
  type    = string
  default = ""
}

# The secret key from `age-keygen`, only for a restore.
variable "identity" {
  type      = string
  default   = null
  ephemeral = true
}

locals {
  bucket = { bucket = "prod-backups", region = "eu-central-1" }
}

resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  restore_from = var.restore == "" ? null : {
    s3            = merge(local.bucket, { key = var.restore })
    identities_wo = var.identity == null ? null : [var.identity]
  }

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.0.11" }
      cp-2 = { address = "10.0.0.12" }
      cp-3 = { address = "10.0.0.13" }
    }
  }

  workers = {
    batch = {
      install  = { disk = "/dev/sda" }
      machines = { w-1 = { address = "10.0.0.21" } }
    }
  }
}

resource "talosop_etcd_backup" "prod" {
  cluster         = talosop_cluster.prod.cluster
  s3              = merge(local.bucket, { prefix = "talos" })
  encryption      = { recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"] }
  compression     = "zstd"
  include_secrets = true
  schedule        = "0 3 * * *"
  retain          = { count = 14, min_age = "168h" }
}

# The snapshots in the bucket at the time of the plan. The handle is written by hand, because the handle of the resource is unknown in
# the plan of a restore.
data "talosop_etcd_backups" "prod" {
  cluster = { name = "prod", endpoint = "https://10.0.0.10:6443", secrets = talosop_secrets.prod.bundle }
  s3      = merge(local.bucket, { prefix = "talos" })
}

output "snapshots" {
  value = { for s in data.talosop_etcd_backups.prod.backups : s.key => s.restorable ? "restorable" : s.reason }
}
