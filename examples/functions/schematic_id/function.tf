# 613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245
output "schematic" {
  value = provider::talosop::schematic_id(yamlencode({
    customization = {
      systemExtensions = {
        officialExtensions = ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"]
      }
    }
  }))
}
