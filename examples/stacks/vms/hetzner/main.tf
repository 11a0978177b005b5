# Servers of Hetzner Cloud from a snapshot with Talos (the image for hcloud; the Factory has it, hcloud-upload-image uploads it). The API
# does not tell the UUID of a server: talosop remembers the one that it saw first, and a server in the place of another one gets
# another name in vms.

terraform {
  required_providers {
    hcloud = { source = "hetznercloud/hcloud", version = ">= 1.50" }
  }
}

variable "vms" {
  type = map(object({ role = string, type = optional(string, "cx33"), location = optional(string, "fsn1") }))
}

variable "admin_networks" {
  description = "Networks from which Terraform reaches the Talos API, and kubectl the Kubernetes API."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

data "hcloud_image" "talos" {
  with_selector = "os=talos"
  most_recent   = true
}

# A machine in maintenance mode takes its configuration from anybody who reaches it.
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

  # Names are unique in a project, too.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [image] # another image is for new servers: talosop upgrades those that run
  }
}

output "machines" {
  value = { for name, vm in hcloud_server.this : name => { address = vm.ipv4_address } }
}

output "install" {
  value = null # the disk is the image
}

output "platform" {
  value = "hcloud"
}
