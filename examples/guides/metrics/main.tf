terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# Each apply writes its result to this file.
provider "talosop" {
  metrics_file = "${var.collector}/prod-applies.prom"
}

variable "collector" {
  description = "Folder of the textfile collector: --collector.textfile.directory of node_exporter."
  type        = string
}

# Use locals: if a data source refers to a resource directly, the apply reads it whenever the resource changes.
locals {
  cluster  = talosop_control_plane.prod.cluster
  observed = merge(talosop_control_plane.prod.observed, talosop_worker.batch.observed)
}

data "talosop_etcd_backups" "prod" {
  cluster = local.cluster
  file    = { path = "backups" }
}

data "talosop_cluster_health" "prod" {
  cluster = local.cluster
  drift   = { for name, machine in local.observed : name => machine.drift }
  backups = data.talosop_etcd_backups.prod.backups
}

output "metrics" {
  value = data.talosop_cluster_health.prod.metrics
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

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_worker" "batch" {
  cluster       = talosop_control_plane.prod.cluster
  talos_version = "v1.14.1"
  install       = { disk = "/dev/sda" }

  machines = {
    w-1 = { address = "10.0.0.21" }
    w-2 = { address = "10.0.0.22" }
  }
}
