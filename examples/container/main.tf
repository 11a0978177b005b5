# A Talos cluster as pods of another Kubernetes cluster, for development, CI and module tests.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# The host cluster, from a kubeconfig. Follow an apply with `tail -f progress.jsonl.txt`.
provider "talosop" {
  progress_file = "${path.root}/progress.jsonl"
  host = {
    kubeconfig_path = pathexpand(var.kubeconfig)
    context         = var.context
  }
}

# The PKI and the tokens of the cluster, created once. All machine configurations and credentials use them.
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

  # State stores an incomplete create, and the next apply continues it. This postcondition makes the run fail.
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}
