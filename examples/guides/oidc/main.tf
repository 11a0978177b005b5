# People log in with an OpenID Connect issuer, and a group of the issuer administers the cluster.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

locals {
  # Talos creates the binding with the cluster. The group has the prefix of groups_prefix.
  administrators = yamlencode({
    cluster = { inlineManifests = [{
      name = "oidc-administrators"
      contents = yamlencode({
        apiVersion = "rbac.authorization.k8s.io/v1"
        kind       = "ClusterRoleBinding"
        metadata   = { name = "oidc-administrators" }
        roleRef    = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "cluster-admin" }
        subjects   = [{ apiGroup = "rbac.authorization.k8s.io", kind = "Group", name = "oidc:kubernetes-admins" }]
      })
    }] }
  })
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
  config_patches     = [local.administrators]

  oidc = {
    issuer_url      = "https://id.example.com/realms/prod"
    client_id       = "kubernetes"
    username_claim  = "email"
    username_prefix = "oidc:"
    groups_claim    = "groups"
    groups_prefix   = "oidc:"
  }

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

# For emergencies, when the issuer does not work.
resource "talosop_kubeconfig_file" "admin" {
  cluster = talosop_control_plane.prod.cluster
  path    = "${path.root}/kubeconfig"
}
