locals {
  # One patch for all machines, merged from those of the team and the site.
  patch = provider::talosop::merge_patches(
    yamlencode({ machine = { sysctls = { "net.core.somaxconn" = "65535" } } }),
    yamlencode({ machine = { time = { servers = ["10.0.0.1"] } } }),
  )
}

# The complete configuration of a machine with its patches, for machines that this provider does not manage.
variable "machine_config" {
  type      = string
  sensitive = true
}

variable "patches" {
  type    = list(string)
  default = []
}

output "user_data" {
  value     = provider::talosop::merge_patches(var.machine_config, var.patches...)
  sensitive = true
}
