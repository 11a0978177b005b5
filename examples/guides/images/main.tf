locals {
  schematic = yamlencode({
    customization = {
      extraKernelArgs  = ["net.ifnames=0"]
      systemExtensions = { officialExtensions = ["siderolabs/iscsi-tools"] }
    }
  })
}

# Sends the schematic to the factory, which builds images only from known schematics.
data "talosop_image" "this" {
  talos_version = "v1.14.1"
  schematic     = local.schematic
  online        = true
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.11:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  schematic          = data.talosop_image.this.schematic_id # or local.schematic, which is equivalent

  machines = {
    cp-1 = { address = "10.0.0.11", install = { disk = "/dev/sda" } }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is not ready. Apply again to continue."
    }
  }
}
