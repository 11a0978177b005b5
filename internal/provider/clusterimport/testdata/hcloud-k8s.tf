# What the files of hcloud-k8s/kubernetes/hcloud beside the configurations define, for servers that exist already.

terraform {
  required_providers {
    talos = { source = "siderolabs/talos" }
  }
}

variable "servers" {
  type = object({ endpoint = string, control_planes = map(string), workers = map(string) })
}

locals {
  control_plane_servers = {
    for i, name in keys(var.servers.control_planes) : name => { id = i + 1, labels = { nodepool = "control-plane" } }
  }
  worker_servers = {
    for i, name in keys(var.servers.workers) : name => { id = i + 11, labels = { nodepool = "worker" } }
  }
  control_plane_nodepools_map = {
    control-plane = { labels = { nodepool = "control-plane" }, annotations = {}, taints = [
      { key = "node-role.kubernetes.io/control-plane", value = "", effect = "NoSchedule" }
    ] }
  }
  worker_nodepools_map       = { worker = { labels = { nodepool = "worker" }, annotations = { rack = "a" }, taints = [] } }
  worker_sum                 = length(var.servers.workers)
  cluster_autoscaler_max_sum = 0
  bare_metal_enabled         = false

  control_plane_private_ipv4_list       = values(var.servers.control_planes)
  control_plane_public_ipv4_list        = []
  control_plane_public_ipv6_list        = []
  control_plane_private_vip_ipv4        = var.servers.endpoint
  control_plane_public_vip_ipv4         = null
  control_plane_public_vip_ipv4_enabled = false
  kube_api_private_ipv4                 = var.servers.endpoint
  kube_api_url_internal                 = "https://${var.servers.endpoint}:6443"
  kube_api_load_balancer_private_ipv4   = null
  kube_api_load_balancer_public_ipv4    = null
  kube_api_load_balancer_public_ipv6    = null

  network_node_ipv4_cidr              = "127.0.0.0/8"
  network_ipv4_gateway                = "10.0.0.1"
  network_pod_ipv4_cidr               = "10.0.128.0/17"
  network_service_ipv4_cidr           = "10.0.96.0/19"
  network_pinned_worker_ipv4_cidrs    = []
  network_bare_metal_shared_ipv4_cidr = "10.0.88.0/25"

  talos_cloud_installer_image_url = "factory.talos.dev/hcloud-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.0"

  hcloud_secret_manifest = {
    name = "hcloud-secret"
    contents = yamlencode({
      apiVersion = "v1"
      kind       = "Secret"
      type       = "Opaque"
      metadata   = { name = "hcloud", namespace = "kube-system" }
      data       = { network = base64encode("4711"), token = base64encode(var.hcloud_token) }
    })
  }
  cilium_manifest                       = null
  talos_ccm_manifest                    = null
  hcloud_ccm_manifest                   = null
  hcloud_csi_manifest                   = null
  talos_backup_manifest                 = null
  longhorn_manifest                     = null
  metrics_server_manifest               = null
  cert_manager_manifest                 = null
  cert_manager_webhook_hetzner_manifest = null
  ingress_nginx_manifest                = null
  cluster_autoscaler_manifest           = null
  rbac_manifest                         = null
  oidc_manifest                         = null
}

# As in talos.tf and client.tf of the module, without its upgrades by talosctl.
resource "talos_machine_secrets" "this" {
  talos_version = var.talos_version
}

resource "talos_machine_configuration_apply" "control_plane" {
  for_each = var.servers.control_planes

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.control_plane[each.key].machine_configuration
  node                        = each.value
}

resource "talos_machine_configuration_apply" "worker" {
  for_each = var.servers.workers

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.worker[each.key].machine_configuration
  node                        = each.value
}

resource "talos_machine_bootstrap" "this" {
  depends_on = [talos_machine_configuration_apply.control_plane, talos_machine_configuration_apply.worker]

  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = values(var.servers.control_planes)[0]
}

resource "talos_cluster_kubeconfig" "this" {
  depends_on = [talos_machine_bootstrap.this]

  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = values(var.servers.control_planes)[0]
}
