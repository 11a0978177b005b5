terraform {
  required_providers {
    talos   = { source = "siderolabs/talos" } # until the first apply removes its resources from the state
    talosop = { source = "talosop/talosop" }
  }
}

variable "control_planes" {
  description = "Addresses of all control planes by name."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by pool and name."
  type        = map(map(string))
}

moved {
  from = talos_machine_secrets.this
  to   = talosop_secrets.this
}

resource "talosop_secrets" "this" {}

removed {
  from = talos_machine_configuration_apply.this

  lifecycle {
    destroy = false
  }
}

removed {
  from = talos_machine_bootstrap.this

  lifecycle {
    destroy = false
  }
}

# This provider configuration has the secrets, for imports. State contains them once, in talosop_secrets.
provider "talosop" {
  alias    = "prod"
  clusters = { prod = { secrets = talosop_secrets.this.bundle } }
}

import {
  provider = talosop.prod
  to       = talosop_cluster.prod
  id = jsonencode({
    cluster       = "prod"
    control_plane = var.control_planes
    workers       = var.workers
  })
}
