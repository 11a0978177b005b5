# Computed without network access.
data "talosop_image" "workers" {
  talos_version = "v1.14.1"
  platform      = "nocloud"
  extensions    = ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"]
}

# Sends the schematic to the factory, which checks version and extensions.
data "talosop_image" "checked" {
  talos_version     = "v1.14.1"
  extensions        = ["qemu-guest-agent"]
  extra_kernel_args = ["net.ifnames=0"]
  secure_boot       = true
  online            = true
}

output "disk_image" {
  value = data.talosop_image.workers.disk_image
}

# For `schematic` of machines.
output "schematic" {
  value = data.talosop_image.checked.schematic_id
}
