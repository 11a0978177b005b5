# Stands in for a cloud: existing VMs whose addresses and UUIDs are unknown until their "create".

variable "vms" {
  type = map(object({ role = string, address = string, uuid = string }))
}

resource "terraform_data" "vm" {
  for_each = var.vms

  input            = { address = each.value.address, uuid = each.value.uuid }
  triggers_replace = each.value.uuid

  lifecycle {
    create_before_destroy = true
  }
}

output "machines" {
  value = { for name, vm in terraform_data.vm : name => { address = vm.output.address, uuid = vm.output.uuid } }
}

output "install" {
  value = { disk = "/dev/sda" }
}

output "platform" {
  value = null
}
