# Machines behind a jump host. The provider logs in there once, and uses this route for all connections to machines and
# Kubernetes APIs.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "jump_host_key" {
  description = "Private key of the user on the jump host, in PEM."
  type        = string
  ephemeral   = true
}

provider "talosop" {
  jump_host = {
    address     = "bastion.example.com"
    user        = "terraform"
    private_key = var.jump_host_key
    host_key    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl" # from ssh-keyscan; verify it
  }
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://kube.prod.internal:6443" # a name that the jump host resolves
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
