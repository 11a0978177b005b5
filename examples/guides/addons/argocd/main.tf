# Argo CD on an existing cluster. The administrator password is in neither state nor plan.
# Talos needs no settings for it, because its pods are unprivileged.
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
  description = "Hash of the password, from `htpasswd -nbBC 10 '' secret | tr -d ':\\n'`."
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
    configs = { params = { "server.insecure" = true } } # the ingress terminates TLS
    server  = { replicas = 2 }
  })]

  # Write-only. If state may contain a value, use set_sensitive, which keeps it out of plans and logs.
  values_wo = [yamlencode({
    configs = { secret = {
      argocdServerAdminPassword = var.admin_password
      # By default the chart uses the time of each upgrade, which ends all sessions.
      argocdServerAdminPasswordMtime = "2026-01-01T00:00:00Z"
    } }
  })]
  values_wo_version = "1" # change this to update the password in the cluster
}
