# A whole Talos cluster as pods of another Kubernetes cluster: for development, CI and tests of modules.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# The host cluster, as kubectl knows it.
provider "talosop" {
  host = {
    kubeconfig_path = pathexpand(var.kubeconfig)
    context         = var.context
  }
}

# The PKI and the tokens of the cluster. Made once; every machine configuration and credential follows from it.
resource "talosop_secrets" "this" {
  deletion_protection = false
}

resource "talosop_cluster" "this" {
  mode                   = "container"
  name                   = var.cluster_name
  secrets                = talosop_secrets.this.bundle
  talos_version          = var.talos_version
  kubernetes_version     = var.kubernetes_version
  cluster_config_patches = var.config_patches
  deletion_protection    = false

  host = {
    namespace        = var.namespace
    create_namespace = true
    image            = var.image
    pod = {
      resources = { requests = { cpu = "250m", memory = "1Gi" } }
      storage   = { class = var.storage_class, var = "10Gi" }
    }
  }

  control_plane = { replicas = var.control_planes }
  workers       = { worker = { replicas = var.workers } }

  # A create that could not finish is stored and continued by the next apply. This makes the run fail all the same.
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
