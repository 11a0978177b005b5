# Argo CD on a cluster that exists, with a password of the administrator that is in neither state nor plan.
# Talos needs no settings for it: its pods are unprivileged.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "kubeconfig" {
  type    = string
  default = "kubeconfig"
}

variable "admin_password" {
  description = "Hash of the password, as `htpasswd -nbBC 10 '' secret | tr -d ':\\n'` makes it."
  type        = string
  ephemeral   = true
}

resource "talosop_addon" "argocd" {
  kubeconfig = { path = var.kubeconfig }
  name       = "argocd"
  namespace  = "argocd"
  repository = "https://argoproj.github.io/argo-helm"
  chart      = "argo-cd"
  version    = "8.6.3"

  values = [yamlencode({
    configs = { params = { "server.insecure" = true } } # TLS ends at the ingress
    server  = { replicas = 2 }
  })]

  # Write-only: where a value may be in the state, set_sensitive keeps it out of plans and logs.
  values_wo = [yamlencode({
    configs = { secret = {
      argocdServerAdminPassword = var.admin_password
      # The chart takes the time of every upgrade by default, which ends all sessions.
      argocdServerAdminPasswordMtime = "2026-01-01T00:00:00Z"
    } }
  })]
  values_wo_version = "1" # another value brings another password into the cluster
}
