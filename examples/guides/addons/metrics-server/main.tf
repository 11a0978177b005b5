# metrics-server, which verifies the certificates of the kubelets.
# The settings are those of https://docs.siderolabs.com/kubernetes-guides/monitoring-and-observability/deploy-metrics-server
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

resource "talosop_secrets" "prod" {}

resource "talosop_control_plane" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.35.2"
  install            = { disk = "/dev/sda" }

  # A kubelet signs its own certificate, which proves nothing. Told to rotate, it asks the cluster for one. These requests need an approval: Kubernetes
  # gives none by itself, and until there is one the logs of pods cannot be read.
  #
  # Without both, metrics-server works with the argument --kubelet-insecure-tls. It then trusts whoever answers at the address of a node, who learns
  # its token and tells an autoscaler what he likes.
  cluster_config_patches = [yamlencode({
    machine = { kubelet = { extraArgs = { "rotate-server-certificates" = "true" } } }
  })]

  config_patches = [yamlencode({
    cluster = { extraManifests = [
      "https://raw.githubusercontent.com/alex1989hu/kubelet-serving-cert-approver/v0.10.0/deploy/standalone-install.yaml",
    ] }
  })]

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_addon" "metrics_server" {
  cluster    = talosop_control_plane.prod.cluster
  name       = "metrics-server"
  namespace  = "kube-system"
  repository = "https://kubernetes-sigs.github.io/metrics-server"
  chart      = "metrics-server"
  version    = "3.13.0"

  values = [yamlencode({
    replicas            = 2
    podDisruptionBudget = { enabled = true, minAvailable = 1 }

    # The control planes of this example are all the nodes there are.
    tolerations = [{ key = "node-role.kubernetes.io/control-plane", operator = "Exists", effect = "NoSchedule" }]
  })]
}
