# The password is in neither state nor plan. In the cluster, Helm stores it with the values of the release.
variable "grafana_password" {
  type      = string
  ephemeral = true
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

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_addon" "monitoring" {
  cluster    = talosop_control_plane.prod.cluster
  name       = "monitoring"
  namespace  = "monitoring"
  repository = "https://prometheus-community.github.io/helm-charts"
  chart      = "kube-prometheus-stack"
  version    = "82.18.0"

  # Later values override earlier ones.
  values = [
    yamlencode({
      prometheus = { prometheusSpec = { retention = "15d" } }
      # On Talos, Prometheus can scrape these only if the machine configuration allows it.
      kubeEtcd  = { enabled = false }
      kubeProxy = { enabled = false }
    }),
    yamlencode({ prometheus = { prometheusSpec = { replicas = 2 } } }),
  ]

  set = [{ name = "grafana.podAnnotations.example\\.com/team", value = "platform" }]

  values_wo         = [yamlencode({ grafana = { adminPassword = var.grafana_password } })]
  values_wo_version = "1" # change this to update the password in the cluster

  # Changes for which the chart has no value.
  patches = [{
    target = { kind = "Deployment", name = ".*grafana" }
    patch  = yamlencode({ spec = { revisionHistoryLimit = 2 } })
  }]

  # The CRDs of the operator change with the chart, and Helm alone would keep the old ones.
  upgrade_crds = true

  # Roll back a failed upgrade.
  atomic       = true
  wait_timeout = "15m"

  # A job of the chart writes the certificates of the webhooks.
  ignore_drift = [
    { kind = "MutatingWebhookConfiguration", paths = ["webhooks"] },
    { kind = "ValidatingWebhookConfiguration", paths = ["webhooks"] },
  ]
}

# A custom chart from a registry with a password.
variable "registry_token" {
  type      = string
  ephemeral = true
}

resource "talosop_addon" "shop" {
  cluster   = talosop_control_plane.prod.cluster
  name      = "shop"
  namespace = "shop"
  chart     = "oci://registry.example.com/charts/shop"
  version   = "2.4.1"
  registry  = { username = "terraform", password_wo = var.registry_token }
  values    = [yamlencode({ replicas = 3 })]
}
