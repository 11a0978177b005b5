terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# There is nothing that has to be configured: every resource carries the addresses and secrets it needs.
provider "talosop" {
  # Optional: secrets of clusters that are to be in neither state nor plan.
  clusters = {
    prod = { secrets = var.secrets }
  }

  # Optional: credentials for the buckets of backups, for all resources that have none of their own.
  s3 = {
    access_key_id     = var.backup_key.id
    secret_access_key = var.backup_key.secret
  }
}

variable "secrets" {
  type      = string
  ephemeral = true
}

variable "backup_key" {
  type      = object({ id = string, secret = string })
  ephemeral = true
}
