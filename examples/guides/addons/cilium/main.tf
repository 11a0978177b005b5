# Cilium instead of Flannel and kube-proxy, in the apply that creates the cluster.
# The settings are from https://docs.siderolabs.com/kubernetes-guides/cni/deploying-cilium
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = "https://10.0.0.10:6443"
  secrets            = talosop_secrets.prod.bundle
  talos_version      = "v1.14.1"
  kubernetes_version = "v1.37.0"

  # Nodes stay NotReady until Cilium runs, and talosop does not wait for them.
  cni        = { name = "none" }
  kube_proxy = false

  control_plane = {
    install = { disk = "/dev/sda" }

    machines = {
      cp-1 = { address = "10.0.0.11" }
      cp-2 = { address = "10.0.0.12" }
      cp-3 = { address = "10.0.0.13" }
    }
  }

  workers = {
    batch = {
      install = { disk = "/dev/sda" }

      machines = {
        w-1 = { address = "10.0.0.21" }
        w-2 = { address = "10.0.0.22" }
      }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}. Apply again to continue."
    }
  }
}

resource "talosop_addon" "cilium" {
  cluster    = talosop_cluster.prod.cluster
  name       = "cilium"
  namespace  = "kube-system"
  repository = "https://helm.cilium.io"
  chart      = "cilium"
  version    = "1.18.3"

  values = [yamlencode({
    ipam                 = { mode = "kubernetes" }
    kubeProxyReplacement = true

    # KubePrism provides the API server on every node before there is a pod network.
    k8sServiceHost = "localhost"
    k8sServicePort = 7445

    # Talos already mounts cgroup v2.
    cgroup = { autoMount = { enabled = false }, hostRoot = "/sys/fs/cgroup" }

    # The defaults of the chart without SYS_MODULE, because Talos does not let pods load kernel modules.
    securityContext = { capabilities = {
      ciliumAgent = [
        "CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
      ]
      cleanCiliumState = ["NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"]
    } }
  })]
}

resource "talosop_addon" "cert_manager" {
  cluster    = talosop_cluster.prod.cluster
  name       = "cert-manager"
  namespace  = "cert-manager"
  repository = "https://charts.jetstack.io"
  chart      = "cert-manager"
  version    = "v1.19.1"
  values     = [yamlencode({ crds = { enabled = true } })]

  # Other addons need the network: their pods cannot start before.
  depends_on = [talosop_addon.cilium]
}

output "network" {
  value = "${talosop_addon.cilium.chart_name} ${talosop_addon.cilium.chart_version}: ${talosop_addon.cilium.status}"
}
