# metrics-server with verification of the kubelet certificates.
# The settings are from https://docs.siderolabs.com/kubernetes-guides/monitoring-and-observability/deploy-metrics-server
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
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"
  install            = { disk = "/dev/sda" }

  # By default a kubelet signs its own certificate, which proves nothing. With rotation on, it requests a certificate from the cluster. Kubernetes does not
  # approve these requests by itself. Until a request is approved, you cannot read the logs of pods on that node.
  #
  # Without both settings, metrics-server needs the argument --kubelet-insecure-tls. It then trusts any server at the address of a node. Such a server
  # learns its token and can send false metrics to an autoscaler.
  kubelet_extra_args = { "rotate-server-certificates" = "true" }

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

    # The control planes are the only nodes of this example.
    tolerations = [{ key = "node-role.kubernetes.io/control-plane", operator = "Exists", effect = "NoSchedule" }]
  })]
}
