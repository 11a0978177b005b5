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

# Key of the snapshot to rehearse with.
variable "snapshot" {
  type = string
}

# A state of its own, spare machines, and an endpoint that only they have. The running cluster stays as it is.
resource "talosop_cluster" "rehearsal" {
  mode               = "metal"
  isolated           = true
  name               = "rehearsal"
  endpoint           = "https://10.0.9.10:6443"
  secrets            = var.secrets
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.36.3"

  # A rehearsal is there to be destroyed.
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
      error_message = "The snapshot was not restored: see the warning of the apply."
    }
  }
}
