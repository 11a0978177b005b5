variable "machine_config" {
  type      = string
  sensitive = true
}

locals {
  config = provider::talosop::parse_machine_config(var.machine_config)
}

output "endpoint" {
  value = nonsensitive(local.config.v1alpha1.cluster.controlPlane.endpoint)
}

output "hostname" {
  value = nonsensitive(try(local.config.HostnameConfig.hostname, local.config.v1alpha1.machine.network.hostname, null))
}
