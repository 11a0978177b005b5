# An addon of a cluster that another tool made: what others change by right is no drift of it, and a state other than deployed is told.
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

resource "talosop_addon" "web" {
  kubeconfig = { path = "kubeconfig" }
  name       = "web"
  namespace  = "web"
  repository = "https://charts.example.com"
  chart      = "web"
  version    = "1.4.2"

  ignore_drift = [
    # Certificates that cert-manager or the controller itself writes into its webhooks.
    { kind = "*WebhookConfiguration", paths = ["webhooks[*].clientConfig.caBundle"] },
    # Replicas that a HorizontalPodAutoscaler sets.
    { kind = "Deployment", name = "web", paths = ["spec.replicas"] },
  ]

  lifecycle {
    postcondition {
      condition     = self.status == "deployed"
      error_message = "The addon is ${self.status}. Apply again to continue."
    }
  }
}
