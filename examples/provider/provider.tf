terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# No configuration is required: every resource has the addresses and secrets that it needs.
provider "talosop" {
  # Optional: secrets of clusters that stay out of state and plans.
  clusters = {
    prod = { secrets = var.secrets }
  }

  # Optional: credentials for backup buckets, for all resources without their own credentials.
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
