# An addon of a cluster that another tool created. ignore_drift lists fields that other controllers may change. The postcondition
# reports any status other than deployed.
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
    # cert-manager or the controller writes certificates into its webhooks.
    { kind = "*WebhookConfiguration", paths = ["webhooks[*].clientConfig.caBundle"] },
    # A HorizontalPodAutoscaler sets the replicas.
    { kind = "Deployment", name = "web", paths = ["spec.replicas"] },
  ]

  lifecycle {
    postcondition {
      condition     = self.status == "deployed"
      error_message = "The addon is ${self.status}. Apply again to continue."
    }
  }
}
