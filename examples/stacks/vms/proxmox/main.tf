# Proxmox VMs from the Talos nocloud image. cloud-init sets the address of each VM, and SMBIOS sets its UUID.

terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox", version = ">= 0.70" }
    talosop = { source = "talosop/talosop" }
  }
}

variable "vms" {
  description = "address contains the prefix, such as 10.0.0.11/24. node is the Proxmox host."
  type        = map(object({ role = string, node = string, address = string, gateway = string }))
}

data "talosop_image" "this" {
  talos_version = "v1.14.1"
  platform      = "nocloud"
}

resource "proxmox_virtual_environment_download_file" "talos" {
  for_each = toset([for vm in values(var.vms) : vm.node])

  node_name               = each.key
  datastore_id            = "local"
  content_type            = "iso"
  file_name               = "talos-${data.talosop_image.this.schematic_id}.img"
  url                     = replace(data.talosop_image.this.disk_image, ".raw.xz", ".raw.gz") # Proxmox cannot unpack xz
  decompression_algorithm = "gz"
  overwrite               = false
}

resource "proxmox_virtual_environment_vm" "this" {
  for_each = var.vms

  name            = each.key
  node_name       = each.value.node
  stop_on_destroy = true # the machine is already reset, and ignores ACPI

  smbios {
    uuid = uuidv5("dns", "${each.key}.vms.example.internal")
  }

  cpu {
    cores = 4
    type  = "host"
  }

  memory {
    dedicated = 8192
  }

  disk {
    datastore_id = "local-lvm"
    file_id      = proxmox_virtual_environment_download_file.talos[each.value.node].id
    interface    = "scsi0"
    size         = 40
  }

  network_device {
    bridge = "vmbr0"
  }

  operating_system {
    type = "l26"
  }

  initialization {
    datastore_id = "local-lvm"

    ip_config {
      ipv4 {
        address = each.value.address
        gateway = each.value.gateway
      }
    }
  }

  # To replace a VM, use another name and address in vms, because both VMs run for a while.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [disk[0].file_id] # a new image is only for new VMs; talosop upgrades running ones
  }
}

output "machines" {
  value = {
    for name, vm in proxmox_virtual_environment_vm.this : name => {
      address = split("/", var.vms[name].address)[0]
      uuid    = vm.smbios[0].uuid
    }
  }
}

output "install" {
  value = null # the VM boots from its disk image
}

output "platform" {
  value = "nocloud"
}
