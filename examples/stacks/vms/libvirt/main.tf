# libvirt VMs from the Talos metal image. libvirt sets the SMBIOS UUID of each VM and waits for its address.

terraform {
  required_providers {
    libvirt = { source = "dmacvicar/libvirt", version = ">= 0.9.2" }
  }
}

variable "vms" {
  type = map(object({ role = string, memory = optional(number, 4096) }))
}

variable "image" {
  description = "Talos disk image in qcow2 format, as a URL or a file. Convert disk_image of talosop_image with qemu-img."
  type        = string
  default     = "/var/lib/libvirt/images/talos-metal-amd64.qcow2"
}

resource "libvirt_volume" "image" {
  name   = "talos.qcow2"
  pool   = "default"
  target = { format = { type = "qcow2" } }
  create = { content = { url = var.image } }
}

resource "libvirt_volume" "disk" {
  for_each = var.vms

  name          = "${each.key}.qcow2"
  pool          = "default"
  capacity      = 40 * 1024 * 1024 * 1024
  target        = { format = { type = "qcow2" } }
  backing_store = { path = libvirt_volume.image.path, format = { type = "qcow2" } }
}

resource "libvirt_domain" "this" {
  for_each = var.vms

  name        = each.key
  type        = "kvm"
  memory      = each.value.memory
  memory_unit = "MiB"
  vcpu        = 2
  running     = true
  autostart   = true
  os          = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  cpu         = { mode = "host-passthrough" }

  devices = {
    disks = [{
      driver = { type = "qcow2" }
      source = { volume = { pool = libvirt_volume.disk[each.key].pool, volume = libvirt_volume.disk[each.key].name } }
      target = { dev = "vda", bus = "virtio" }
    }]
    interfaces = [{
      model       = { type = "virtio" }
      source      = { network = { network = "default" } }
      wait_for_ip = { source = "lease", timeout = 300 }
    }]
  }

  # Names are unique on a host. To replace a VM, use another name in vms.
  lifecycle {
    create_before_destroy = true
  }
}

data "libvirt_domain_interface_addresses" "this" {
  for_each = libvirt_domain.this

  domain = each.value.name
  source = "lease"
}

output "machines" {
  value = {
    for name, vm in libvirt_domain.this : name => {
      address = data.libvirt_domain_interface_addresses.this[name].interfaces[0].addrs[0].addr
      uuid    = vm.uuid
    }
  }
}

output "install" {
  value = null # the VM boots from its disk image
}

output "platform" {
  value = "metal"
}
