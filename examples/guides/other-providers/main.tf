# A cluster and the resources of other providers in it, in one apply. Their credentials are created for the run and never stored.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop    = { source = "talosop/talosop" }
    kubernetes = { source = "hashicorp/kubernetes", version = ">= 2.36" }
    helm       = { source = "hashicorp/helm", version = ">= 3.0" }
  }
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
  type        = map(string)
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

resource "talosop_secrets" "this" {
  deletion_protection = var.deletion_protection
}

resource "talosop_control_plane" "this" {
  mode                = "metal"
  name                = "prod"
  endpoint            = var.endpoint
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.14.1"
  kubernetes_version  = "v1.37.0"
  install             = { disk = "/dev/sda" }
  machines            = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
}

# Valid for the run. To limit its rights, use a custom group with RBAC rules instead of system:masters.
ephemeral "talosop_kubeconfig" "this" {
  cluster = talosop_control_plane.this.cluster
  ttl     = "30m"
}

provider "kubernetes" {
  host                   = ephemeral.talosop_kubeconfig.this.endpoint
  tls_server_name        = ephemeral.talosop_kubeconfig.this.tls_server_name
  cluster_ca_certificate = ephemeral.talosop_kubeconfig.this.cluster_ca_certificate
  client_certificate     = ephemeral.talosop_kubeconfig.this.client_certificate
  client_key             = ephemeral.talosop_kubeconfig.this.client_key
}

provider "helm" {
  kubernetes = {
    host                   = ephemeral.talosop_kubeconfig.this.endpoint
    tls_server_name        = ephemeral.talosop_kubeconfig.this.tls_server_name
    cluster_ca_certificate = ephemeral.talosop_kubeconfig.this.cluster_ca_certificate
    client_certificate     = ephemeral.talosop_kubeconfig.this.client_certificate
    client_key             = ephemeral.talosop_kubeconfig.this.client_key
  }
}

resource "kubernetes_config_map_v1" "site" {
  metadata {
    name      = "site"
    namespace = "default"
  }

  data = { name = "prod" }
}

resource "helm_release" "metrics_server" {
  name       = "metrics-server"
  namespace  = "kube-system"
  repository = "https://kubernetes-sigs.github.io/metrics-server"
  chart      = "metrics-server"
  version    = "3.13.0"
}
