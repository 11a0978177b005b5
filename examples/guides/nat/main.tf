# Control planes in a private network for nodes and etcd, each with a public address by one-to-one NAT.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "control_planes" {
  description = "Addresses of the control planes by name: their own address, and the address at which Terraform reaches them."
  type        = map(object({ private = string, public = string }))
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://kube.example.com:6443" # a load balancer in front of the control planes
  cert_sans          = ["10.0.0.2"]                    # its address in the private network
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }

  machines = { for name, at in var.control_planes : name => { address = at.private, talos_endpoint = at.public } }

  # Kubelets and etcd announce the address of the machine in this network.
  cluster_config_patches = [
    yamlencode({ apiVersion = "v1alpha1", kind = "KubeNodeConfig", nodeIP = { validSubnets = ["10.0.0.0/16"] } }),
    # Before contract v1.14: yamlencode({ machine = { kubelet = { nodeIP = { validSubnets = ["10.0.0.0/16"] } } } }),
  ]
  config_patches = [yamlencode({
    cluster = { etcd = { advertisedSubnets = ["10.0.0.0/16"] } }
  })]
}
