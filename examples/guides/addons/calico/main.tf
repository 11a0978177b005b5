# Calico instead of Flannel, through its operator.
# The settings are from https://docs.siderolabs.com/kubernetes-guides/cni/deploy-calico (nftables) and
# https://docs.tigera.io/calico/latest/getting-started/kubernetes/helm
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

locals {
  pods = "10.244.0.0/16"

  # The operator uses the host network, which Talos allows only in privileged namespaces.
  namespace = yamlencode({
    cluster = { inlineManifests = [{
      name = "tigera-operator"
      contents = yamlencode({
        apiVersion = "v1"
        kind       = "Namespace"
        metadata   = { name = "tigera-operator", labels = { "pod-security.kubernetes.io/enforce" = "privileged" } }
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
  cni                = { name = "none" }
  pod_cidrs          = [local.pods]
  config_patches     = [local.namespace]

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

resource "talosop_addon" "calico" {
  cluster          = talosop_control_plane.prod.cluster
  name             = "calico"
  namespace        = "tigera-operator"
  create_namespace = false # Talos creates it with its label
  repository       = "https://docs.tigera.io/calico/charts"
  chart            = "tigera-operator"
  version          = "v3.31.5"
  upgrade_crds     = true

  values = [yamlencode({
    installation = {
      cni = { type = "Calico" }

      calicoNetwork = {
        bgp            = "Disabled"
        linuxDataplane = "Nftables" # like kube-proxy on Talos
        ipPools        = [{ cidr = local.pods, encapsulation = "VXLAN", natOutgoing = "Enabled", nodeSelector = "all()" }]
      }

      # Both would write to host paths that are read-only on Talos.
      flexVolumePath          = "None"
      kubeletVolumePluginPath = "None"
    }

    # Observability components use memory on every node.
    goldmane = { enabled = false }
    whisker  = { enabled = false }
  })]
}
