terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# The secrets bundle of the running cluster: from `include_secrets` of the backup, or an output of its state.
variable "secrets" {
  type      = string
  sensitive = true
}

# Key of the snapshot for the rehearsal.
variable "snapshot" {
  type = string
}

# A separate state, spare machines and a separate endpoint. The running cluster does not change.
resource "talosop_cluster" "rehearsal" {
  mode               = "metal"
  isolated           = true
  name               = "rehearsal"
  endpoint           = "https://10.0.9.10:6443"
  secrets            = var.secrets
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  # You destroy the cluster after the rehearsal.
  deletion_protection = false

  restore_from = {
    s3 = { bucket = "prod-backups", region = "eu-central-1", key = var.snapshot }
  }

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.9.11" }
      cp-2 = { address = "10.0.9.12" }
      cp-3 = { address = "10.0.9.13" }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The apply did not restore the snapshot. See its warning."
    }
  }
}
