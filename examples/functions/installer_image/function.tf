locals {
  schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515" # with the QEMU guest agent

  # factory.talos.dev/metal-installer/ce4c9805…:v1.14.1
  installer = provider::talosop::installer_image("v1.14.1", local.schematic)

  # mirror.example.com/aws-installer-secureboot/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.14.1
  mirrored = provider::talosop::installer_image("v1.14.1", null, {
    platform    = "aws"
    secure_boot = true
    registry    = "mirror.example.com"
  })
}

output "installers" {
  value = [local.installer, local.mirrored]
}
