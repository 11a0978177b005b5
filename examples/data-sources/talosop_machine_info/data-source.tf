# Reads the hardware of a machine in maintenance mode before it gets a configuration.
data "talosop_machine_info" "new" {
  address = "10.0.0.31"
}

output "disks" {
  value = [for disk in data.talosop_machine_info.new.disks : disk]
}

output "uuid" {
  value = data.talosop_machine_info.new.uuid
}
