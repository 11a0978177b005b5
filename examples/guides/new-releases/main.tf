# Warns in each plan if the versions of a cluster are more than two patch releases behind. A plan without access to the
# factory or the registry warns, too, and continues.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "talos_version" {
  default = "v1.14.1"
}

variable "kubernetes_version" {
  default = "v1.37.0"
}

variable "most_patches_behind" {
  default = 2
}

variable "factory_url" {
  default = "https://factory.talos.dev"
}

variable "kubelet_repository" {
  default = "ghcr.io/siderolabs/kubelet"
}

check "talos_is_recent" {
  data "talosop_versions" "talos" {
    product     = "talos"
    minor       = regex("^v[0-9]+[.][0-9]+", var.talos_version)
    newer_than  = var.talos_version
    factory_url = var.factory_url
  }

  assert {
    condition     = length(data.talosop_versions.talos.versions) <= var.most_patches_behind
    error_message = "Talos ${var.talos_version} is behind: ${join(", ", data.talosop_versions.talos.versions)}."
  }
}

check "kubernetes_is_recent" {
  data "talosop_versions" "kubernetes" {
    product       = "kubernetes"
    talos_version = var.talos_version
    minor         = regex("^v[0-9]+[.][0-9]+", var.kubernetes_version)
    newer_than    = var.kubernetes_version
    repository    = var.kubelet_repository
  }

  assert {
    condition     = length(data.talosop_versions.kubernetes.versions) <= var.most_patches_behind
    error_message = "Kubernetes ${var.kubernetes_version} is behind: ${join(", ", data.talosop_versions.kubernetes.versions)}."
  }
}
