locals {
  # One patch for all machines, of what the team and the site ask for.
  patch = provider::talosop::merge_patches(
    yamlencode({ machine = { sysctls = { "net.core.somaxconn" = "65535" } } }),
    yamlencode({ machine = { time = { servers = ["10.0.0.1"] } } }),
  )
}

# The configuration that a machine gets once patches are applied, for what is not made by this provider.
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
