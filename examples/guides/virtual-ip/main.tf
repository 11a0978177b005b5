# Three control planes share a virtual IP, in place of a load balancer.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

locals {
  virtual_ip = "10.0.0.10" # a free address in the network of the control planes
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://${local.virtual_ip}:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }

  # The network interface of all control planes. `links` of talosop_machine_info lists those of a machine.
  vip = { address = local.virtual_ip, link = "eth0" }

  # Without workers, the control planes run the pods.
  allow_scheduling_on_control_planes = true

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is ${self.phase}. Apply again to continue."
    }
  }
}

resource "talosop_kubeconfig_file" "admin" {
  cluster = talosop_control_plane.prod.cluster
  path    = "${path.root}/kubeconfig"
}
