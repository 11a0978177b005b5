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
    cp-3 = { address = "10.0.0.13", install = { disk = "/dev/nvme0n1" } }
  }

  # The host of the endpoint is a virtual IP that the control planes share.
  vip = { address = "10.0.0.10", link = "eth0" }

  # The Kubernetes API accepts tokens of this issuer.
  oidc = {
    issuer_url   = "https://id.example.com/realms/prod"
    client_id    = "kubernetes"
    groups_claim = "groups"
  }

  # Patches for every machine of the cluster, including workers.
  cluster_config_patches = [yamlencode({
    machine = { sysctls = { "net.core.somaxconn" = "65535" } }
  })]

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is ${self.phase}. Apply again to continue."
    }
  }
}
