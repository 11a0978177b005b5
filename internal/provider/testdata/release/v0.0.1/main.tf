# What a release keeps a state of (make record-release): every type that simulated machines can do. @…@ are places of the site.

terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

resource "talosop_secrets" "this" {
  deletion_protection = false
}

resource "talosop_control_plane" "this" {
  mode                   = "metal"
  name                   = "test"
  endpoint               = "@endpoint@"
  secrets                = talosop_secrets.this.bundle
  talos_version          = "v1.13.0"
  kubernetes_version     = "v1.36.2"
  install                = { disk = "/dev/sda" }
  cluster_config_patches = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = "1024" } } })]
  deletion_protection    = false

  machines = { cp-1 = { address = "@cp-1@" } }
}

resource "talosop_worker" "this" {
  cluster         = talosop_control_plane.this.cluster
  name            = "batch"
  talos_version   = "v1.13.0"
  install         = { disk_selector = { size = ">= 1GB" } }
  config_patches  = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]
  max_unavailable = "50%"

  machines = { w-1 = { address = "@w-1@", uuid = "@uuid:w-1@" } }
  timeouts = { update = "1h" }
}

resource "talosop_machine" "this" {
  cluster       = talosop_control_plane.this.cluster
  role          = "worker"
  name          = "w-2"
  address       = "@w-2@"
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  on_destroy    = "preserve"
}

resource "talosop_secrets" "whole" {
  deletion_protection = false
}

resource "talosop_cluster" "whole" {
  mode                = "metal"
  name                = "whole"
  endpoint            = "@other-endpoint@"
  secrets             = talosop_secrets.whole.bundle
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  deletion_protection = false

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { cp-2 = { address = "@cp-2@" } }
  }

  workers = {
    batch = {
      install  = { disk = "/dev/sda" }
      machines = { w-3 = { address = "@w-3@" } }
    }
  }
}

resource "talosop_etcd_backup" "this" {
  cluster     = talosop_control_plane.this.cluster
  file        = { path = "backups" }
  compression = "zstd"
  retain      = { count = 3, min_age = "168h" }
  triggers    = { a = "1" }
}

resource "talosop_machine_reboot" "this" {
  cluster  = talosop_control_plane.this.cluster
  machines = ["@w-2@"]
  triggers = { date = "a" }

  depends_on = [talosop_machine.this]
}

resource "talosop_machine_leave" "this" {
  cluster  = talosop_control_plane.this.cluster
  machine  = "@w-1@"
  uuid     = "@uuid:w-1@"
  triggers = { vm = "1" }
  drain    = { timeout = "5m" }
  timeouts = { delete = "1h" }

  depends_on = [talosop_worker.this]
}

# These end before the next release: the plan of it has ones of its own in their place.
resource "talosop_kubeconfig_file" "this" {
  cluster      = talosop_control_plane.this.cluster
  path         = "kubeconfig"
}

resource "talosop_talosconfig_file" "this" {
  cluster      = talosop_control_plane.this.cluster
  path         = "talosconfig"
  roles        = ["os:reader"]
}
