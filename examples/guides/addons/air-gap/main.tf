# Machines and addons that reach only a private registry, registry.example.internal, with a certificate of a private CA.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "registry_ca" {
  description = "PEM certificate of the CA that signed the certificate of the registry."
}

locals {
  # The path of an image in the registry contains its origin: docker.io/library/busybox is mirror/docker.io/library/busybox.
  mirrored = ["docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.k8s.io"]
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
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

  # Copy the chart with `helm pull` and `helm push`. The computer that runs Terraform loads the chart, and the machines load its images.
  # The images need no values, because registry.k8s.io is mirrored.
  chart    = "oci://registry.example.internal/charts/metrics-server"
  version  = "3.13.0"
  registry = { ca = var.registry_ca }
}

# Without a registry, put the chart package next to the configuration.
resource "talosop_addon" "cert_manager" {
  cluster   = talosop_control_plane.prod.cluster
  name      = "cert-manager"
  namespace = "cert-manager"
  chart     = "${path.module}/charts/cert-manager-v1.19.1.tgz"
  values    = [yamlencode({ crds = { enabled = true } })]
}
