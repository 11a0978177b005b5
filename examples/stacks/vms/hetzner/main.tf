# Hetzner Cloud servers from a Talos snapshot. Upload the hcloud image of the Image Factory with hcloud-upload-image. The API does not
# return the UUID of a server, so talosop remembers the first one that it sees. To replace a server, use another name in vms.

terraform {
  required_providers {
    hcloud = { source = "hetznercloud/hcloud", version = ">= 1.50" }
  }
}

variable "vms" {
  type = map(object({ role = string, type = optional(string, "cx33"), location = optional(string, "fsn1") }))
}

variable "admin_networks" {
  description = "Networks that may reach the Talos API (Terraform) and the Kubernetes API (kubectl)."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

data "hcloud_image" "talos" {
  with_selector = "os=talos"
  most_recent   = true
}

# Any client that reaches a machine in maintenance mode can configure it.
resource "hcloud_firewall" "this" {
  name = "talos"

  dynamic "rule" {
    for_each = ["50000", "6443"]

    content {
      direction  = "in"
      protocol   = "tcp"
      port       = rule.value
      source_ips = var.admin_networks
    }
  }
}

resource "hcloud_server" "this" {
  for_each = var.vms

  name         = each.key
  server_type  = each.value.type
  location     = each.value.location
  image        = data.hcloud_image.talos.id
  firewall_ids = [hcloud_firewall.this.id]

  # Names are unique in a project.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [image] # a new image is only for new servers; talosop upgrades running ones
  }
}

output "machines" {
  value = { for name, vm in hcloud_server.this : name => { address = vm.ipv4_address } }
}

output "install" {
  value = null # the VM boots from its disk image
}

output "platform" {
  value = "hcloud"
}
