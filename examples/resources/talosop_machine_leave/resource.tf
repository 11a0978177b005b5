variable "cluster" {
  description = "The cluster handle: cluster of talosop_cluster or talosop_control_plane."
  type        = any
  sensitive   = true
}

variable "vms" {
  description = "The VMs by name: ID and address, as attributes of the resource that creates them."
  type        = map(object({ id = string, address = string }))
}

# It refers to the VM, so it is destroyed first, and the machine leaves the cluster.
resource "talosop_machine_leave" "this" {
  for_each = var.vms

  cluster  = var.cluster
  machine  = each.value.address
  triggers = { vm = each.value.id }
}
