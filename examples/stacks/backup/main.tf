# etcd snapshots and restore. If the control planes lost their disks and wait in maintenance mode again, apply with the snapshot to
# restore:
#
#   terraform apply -var restore="$(terraform output -raw latest)"

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
  type        = map(string)
}

variable "recipient" {
  description = "age public key (`age-keygen`) for the encryption of the snapshots, which contain every Secret of the cluster."
  type        = string
}

variable "restore" {
  description = "Key of the snapshot to restore. Leave it unset if you do not restore."
  type        = string
  default     = null
}

variable "identity" {
  description = "age secret key, only for a restore."
  type        = string
  default     = null
  ephemeral   = true
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

locals {
  # A local folder. To use a bucket: s3 = { bucket = "prod-backups", region = "eu-central-1" }, here and in restore_from.
  folder = "${path.root}/backups"
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "backup"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection

  restore_from       = var.restore == null ? null : { file = { path = "${local.folder}/${var.restore}" } }
  restore_identities = var.identity == null ? null : [var.identity]
}

resource "talosop_etcd_backup" "this" {
  cluster     = module.cluster.cluster
  file        = { path = local.folder }
  encryption  = { recipients = [var.recipient] }
  compression = "zstd"
  schedule    = "0 3 * * *" # on the first run of Terraform after three o'clock
  retain      = { count = 14, min_age = "168h" }
}

output "latest" {
  value = talosop_etcd_backup.this.key
}
