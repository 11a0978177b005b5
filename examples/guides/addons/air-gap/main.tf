# Machines and addons that reach nothing but a registry of one's own, registry.example.internal, with a certificate of one's own authority.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "registry_ca" {
  description = "Certificate in PEM of the authority that signed the registry's."
}

locals {
  # Images are pulled from paths of the registry that have the names of their origins: docker.io/library/busybox is mirror/docker.io/library/busybox.
  mirrored = ["docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.k8s.io"]
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.35.2"
  install            = { disk = "/dev/sda" }
  air_gapped         = true

  registries = {
    mirrors = {
      for host in local.mirrored : host => {
        endpoints     = [{ url = "https://registry.example.internal/v2/mirror/${host}", override_path = true }]
        skip_fallback = true
      }
    }
    tls = { "registry.example.internal" = { ca = var.registry_ca } }
  }

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_addon" "metrics_server" {
  cluster   = talosop_control_plane.prod.cluster
  name      = "metrics-server"
  namespace = "kube-system"

  # The chart was copied with `helm pull` and `helm push`; whoever runs Terraform asks for it, and the machines for its images, which need
  # no values: their registry.k8s.io is the mirror.
  chart    = "oci://registry.example.internal/charts/metrics-server"
  version  = "3.13.0"
  registry = { ca = var.registry_ca }
}

# Where there is no registry at all, the package lies beside the configuration.
resource "talosop_addon" "cert_manager" {
  cluster   = talosop_control_plane.prod.cluster
  name      = "cert-manager"
  namespace = "cert-manager"
  chart     = "${path.module}/charts/cert-manager-v1.19.1.tgz"
  values    = [yamlencode({ crds = { enabled = true } })]
}
