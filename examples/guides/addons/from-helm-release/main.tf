terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

removed {
  from = helm_release.metrics_server

  lifecycle {
    destroy = false
  }
}

import {
  to = talosop_addon.metrics_server
  id = jsonencode({
    kubeconfig = { path = "kubeconfig" }
    namespace  = "kube-system"
    name       = "metrics-server"
    repository = "https://kubernetes-sigs.github.io/metrics-server"
    chart      = "metrics-server"
    version    = "3.13.0"
  })
}

resource "talosop_addon" "metrics_server" {
  kubeconfig = { path = "kubeconfig" }
  name       = "metrics-server"
  namespace  = "kube-system"
  repository = "https://kubernetes-sigs.github.io/metrics-server"
  chart      = "metrics-server"
  version    = "3.13.0"
}
