data "talosop_boot_assets" "rack" {
  talos_version = "v1.14.1"
  schematic     = file("${path.module}/schematic.yaml")
  kernel_args   = ["ip=dhcp"]

  # The URL where Matchbox serves the files of `downloads`.
  assets_url = "http://10.0.0.2:8080/assets"

  machines = {
    cp-1 = { mac_address = "52:54:00:12:34:01" }
    cp-2 = { mac_address = "52:54:00:12:34:02" }
    w-1  = { mac_address = "52:54:00:12:34:11", architecture = "arm64" }
  }
}

output "ipxe_script" {
  value = data.talosop_boot_assets.rack.ipxe_script
}
