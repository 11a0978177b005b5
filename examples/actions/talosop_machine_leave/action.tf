variable "secrets" {
  description = "Secrets of the cluster: bundle of talosop_secrets."
  type        = string
  sensitive   = true
}

# Stands in for a VM, such as hcloud_server, aws_instance or proxmox_virtual_environment_vm.
resource "terraform_data" "vm" {
  input = { address = "10.0.0.21" }

  lifecycle {
    action_trigger {
      events  = [before_destroy]
      actions = [action.talosop_machine_leave.this]
    }
  }
}

# caller is the VM that Terraform is about to destroy. The handle must not come from a resource that refers to VMs.
action "talosop_machine_leave" "this" {
  config {
    cluster = {
      name     = "prod"
      endpoint = "https://10.0.0.10:6443"
      secrets  = var.secrets
    }
    machine = caller.output.address
  }
}
