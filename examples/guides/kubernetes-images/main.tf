variable "kubernetes_version" {
  default = "v1.37.0"
}

locals {
  kubelet = "registry.example.com/kubelet:${var.kubernetes_version}"
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = var.kubernetes_version
  install            = { disk = "/dev/sda" }
  machines           = { cp-1 = { address = "10.0.0.11" } }

  cluster_config_patches = [
    yamlencode({ apiVersion = "v1alpha1", kind = "KubeletConfig", image = local.kubelet }),
    # Before contract v1.14: yamlencode({ machine = { kubelet = { image = local.kubelet } } }),
  ]
}
