variable "kubernetes_version" {
  default = "v1.36.3"
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = var.kubernetes_version
  install            = { disk = "/dev/sda" }
  machines           = { cp-1 = { address = "10.0.0.11" } }

  cluster_config_patches = [yamlencode({
    machine = { kubelet = { image = "registry.example.com/kubelet:${var.kubernetes_version}" } }
  })]
}
