# What the files of hcloud-talos/talos/hcloud beside the configurations define, for servers that exist already.

terraform {
  required_providers {
    talos = { source = "siderolabs/talos" }
  }
}

variable "servers" {
  type = object({ endpoint = string, control_planes = map(string), workers = map(string) })
}

locals {
  control_planes = [for i, name in keys(var.servers.control_planes) : {
    name    = "control-plane-${i + 1}"
    address = var.servers.control_planes[name]
    labels  = var.control_plane_nodes[i].labels
    taints  = var.control_plane_nodes[i].taints
  }]
  workers = [for i, name in keys(var.servers.workers) : {
    name    = "worker-${i + 1}"
    address = var.servers.workers[name]
    labels  = var.worker_nodes[i].labels
    taints  = var.worker_nodes[i].taints
  }]
  worker_count = length(local.workers)

  network_id               = "4711"
  node_ipv4_cidr           = var.node_ipv4_cidr
  node_ipv4_cidr_mask_size = "24"
  pod_ipv4_cidr            = var.pod_ipv4_cidr
  service_ipv4_cidr        = var.service_ipv4_cidr

  control_plane_private_vip_ipv4  = var.servers.endpoint
  control_plane_private_ipv4_list = values(var.servers.control_planes)
  control_plane_public_ipv4_list  = values(var.servers.control_planes)
  control_plane_public_ipv6_list  = []
}

# The module passes the configurations to Hetzner Cloud as user data.
resource "talos_machine_configuration_apply" "this" {
  for_each = { for one in concat(local.control_planes, local.workers) : one.name => one.address }

  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = each.value
  machine_configuration_input = try(
    data.talos_machine_configuration.control_plane[each.key].machine_configuration,
    data.talos_machine_configuration.worker[each.key].machine_configuration,
  )
}
