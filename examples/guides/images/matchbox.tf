data "talosop_boot_assets" "rack" {
  talos_version = "v1.14.1"
  schematic     = local.schematic
  assets_url    = "http://10.0.0.2:8080/assets"

  machines = {
    cp-1 = { mac_address = "52:54:00:12:34:01" }
    w-1  = { mac_address = "52:54:00:12:34:11" }
  }
}

# The content of the data folder of Matchbox. Write it with a provider such as hashicorp/local.
output "matchbox" {
  value = merge(
    { for name, boot in data.talosop_boot_assets.rack.boot : "profiles/${name}.json" => boot.matchbox_profile },
    { for name, boot in data.talosop_boot_assets.rack.boot : "groups/${name}.json" => boot.matchbox_group },
  )
}

# The content of its assets folder, with the download URLs.
output "downloads" {
  value = data.talosop_boot_assets.rack.downloads
}
