# The Talos releases up to an approved minor version, from the public Image Factory.
data "talosop_versions" "talos" {
  product = "talos"
  up_to   = "v1.14"
}

# The Kubernetes releases that a Talos version supports, from a mirror of the kubelet images.
data "talosop_versions" "kubernetes" {
  product       = "kubernetes"
  talos_version = "v1.14.1"
  minor         = "v1.37"
  repository    = "registry.example.com/siderolabs/kubelet"
}

output "newest_talos" {
  value = data.talosop_versions.talos.newest
}

output "newest_patches_of_talos" {
  value = data.talosop_versions.talos.newest_patches # such as { "v1.14" = "v1.14.1" }
}

output "newest_kubernetes" {
  value = data.talosop_versions.kubernetes.newest
}
