variable "before" {
  type      = string
  sensitive = true
}

variable "after" {
  type      = string
  sensitive = true
}

# Lines such as: ~ v1alpha1: machine.sysctls["net.core.somaxconn"]: "1024" -> "65535"
output "changes" {
  value = nonsensitive(provider::talosop::machine_config_diff(var.before, var.after))[*].text
}
