# Longhorn on the NVMe disks of the workers.
# The settings are from https://docs.siderolabs.com/kubernetes-guides/csi/longhorn
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

locals {
  # From https://factory.talos.dev, with the extensions siderolabs/iscsi-tools and siderolabs/util-linux-tools.
  schematic = "613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245"

  # Talos mounts the user volume with this name at /var/mnt/longhorn, for the kubelet and for pods.
  path = "/var/mnt/longhorn"

  volume = yamlencode({
    apiVersion = "v1alpha1"
    kind       = "UserVolumeConfig"
    name       = "longhorn"
    provisioning = {
      diskSelector = { match = "disk.transport == 'nvme' && !system_disk" }
      minSize      = "50GiB"
      grow         = true
    }
  })

  # Longhorn runs programs that it stores below /var. Talos 1.14 refuses that by default.
  programs = yamlencode({
    apiVersion = "v1alpha1"
    kind       = "VolumeConfig"
    name       = "EPHEMERAL"
    mount      = { secure = false }
  })

  # Longhorn pods are privileged, which Talos refuses in other namespaces.
  namespace = yamlencode({
    cluster = { inlineManifests = [{
      name = "longhorn-system"
      contents = yamlencode({
        apiVersion = "v1"
        kind       = "Namespace"
        metadata   = { name = "longhorn-system", labels = { "pod-security.kubernetes.io/enforce" = "privileged" } }
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
  config_patches     = [local.namespace]

  machines = {
    cp-1 = { address = "10.0.0.11" }
    cp-2 = { address = "10.0.0.12" }
    cp-3 = { address = "10.0.0.13" }
  }
}

resource "talosop_worker" "storage" {
  name           = "storage"
  cluster        = talosop_control_plane.prod.cluster
  talos_version  = "v1.14.1"
  install        = { disk = "/dev/sda" }
  schematic      = local.schematic
  config_patches = [local.volume, local.programs]

  machines = {
    w-1 = { address = "10.0.0.21" }
    w-2 = { address = "10.0.0.22" }
    w-3 = { address = "10.0.0.23" }
  }
}

resource "talosop_addon" "longhorn" {
  cluster          = talosop_control_plane.prod.cluster
  name             = "longhorn"
  namespace        = "longhorn-system"
  create_namespace = false # Talos creates it with its label
  repository       = "https://charts.longhorn.io"
  chart            = "longhorn"
  version          = "1.11.1"
  wait_timeout     = "15m"

  values = [yamlencode({
    defaultSettings = {
      defaultDataPath = local.path

      # The chart refuses an uninstall without this setting, which deletes all volumes. Apply it before a destroy.
      # deletingConfirmationFlag = true
    }
  })]

  # An upgrade runs once the nodes have their settings. A destroy removes Longhorn while its nodes still exist.
  depends_on = [talosop_worker.storage]
}
