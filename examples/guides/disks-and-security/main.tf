# Disk encryption, Secure Boot, image verification, and volumes.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "passphrase" {
  description = "Opens the disks when the TPM cannot, such as after a change of the mainboard."
  type        = string
  sensitive   = true
}

locals {
  # Slot 0 opens the disk normally. Slot 1 is the recovery key, and stays when you replace slot 0.
  encryption_keys = {
    0 = { tpm = { check_secure_boot = true } }
    1 = { passphrase = var.passphrase }
  }
}

resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  control_plane = {
    install     = { disk_selector = { type = "nvme" } }
    secure_boot = true

    system_volumes = {
      STATE     = { encryption_keys = local.encryption_keys }
      EPHEMERAL = { max_size = "80%", encryption_keys = local.encryption_keys }
      ETCD      = { min_size = "10GiB", max_size = "20GiB", encryption_keys = local.encryption_keys } # from Talos 1.14
    }

    image_verification = [
      { image = "registry.k8s.io/*", issuer = "https://accounts.google.com", subject = "krel-trust@k8s-releng-prod.iam.gserviceaccount.com" },
      { image = "evil.example.com/*", deny = true },
    ]

    machines = {
      cp-1 = { address = "10.0.0.11" }
      cp-2 = { address = "10.0.0.12" }
      cp-3 = { address = "10.0.0.13" }
    }
  }

  workers = {
    batch = {
      install = { disk = "/dev/sda" }

      system_volumes = {
        # Images and writable layers of containers, on another disk than the system.
        CRI = { min_size = "100GiB", grow = true, disk_selector = "disk.transport == \"nvme\" && !system_disk" } # from Talos 1.14
      }

      # A volume for pods is a separate document.
      config_patches = [<<-YAML
        apiVersion: v1alpha1
        kind: UserVolumeConfig
        name: scratch
        provisioning:
          diskSelector:
            match: disk.rotational
          minSize: 50GiB
      YAML
      ]

      machines = { w-1 = { address = "10.0.0.21" } }
    }
  }
}
