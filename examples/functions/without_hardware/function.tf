variable "patches" {
  description = "Patches of the machines of a cluster."
  type        = list(string)
  default = [
    <<-EOT
      machine:
        nodeLabels: { example.com/pool: storage }
        network: { interfaces: [{ interface: eth0, addresses: [10.0.0.11/24] }] }
    EOT
    ,
    <<-EOT
      apiVersion: v1alpha1
      kind: UserVolumeConfig
      name: data
      provisioning: { diskSelector: { match: disk.transport == "nvme" }, minSize: 100GiB }
    EOT
  ]
}

locals {
  portable = provider::talosop::without_hardware(var.patches)
}

# One patch, with the label.
output "patches" {
  value = local.portable.patches
}

# machine.network and the volume.
output "skipped" {
  value = [for part in local.portable.skipped : "${part.path}: ${part.reason}"]
}
