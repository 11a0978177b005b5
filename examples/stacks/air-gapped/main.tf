# Machines that reach only a private registry and a private time server. They pull every image from that registry, including Talos and
# its installer. The path of an image contains its origin: registry.k8s.io/pause is mirror/registry.k8s.io/pause.

terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {
  progress_file = "${path.root}/progress.jsonl" # tail -f progress.jsonl.txt shows the progress of an apply
}

variable "endpoint" {
  description = "URL of the Kubernetes API."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
  type        = map(string)
}

variable "registry" {
  description = "Name of the registry, and the PEM certificate of the CA that signed its certificate."
  type        = object({ host = string, ca = string })
}

variable "time_server" {
  description = "Time server in the network of the machines. Without one, the machines trust their clocks."
  type        = string
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}

module "cluster" {
  source = "../../modules/cluster"

  name                = "air-gapped"
  endpoint            = var.endpoint
  control_planes      = { for name, address in var.control_planes : name => { address = address } }
  deletion_protection = var.deletion_protection
  air_gapped          = true

  registries = {
    mirrors = {
      for origin in ["docker.io", "factory.talos.dev", "gcr.io", "ghcr.io", "quay.io", "registry.k8s.io"] : origin => {
        endpoints     = [{ url = "https://${var.registry.host}/v2/mirror/${origin}", override_path = true }]
        skip_fallback = true
      }
    }
    tls = { (var.registry.host) = { ca = var.registry.ca } }
  }

  config_patches = [yamlencode({ machine = { time = { servers = [var.time_server] } } })]
}

output "nodes" {
  value = module.cluster.nodes
}
