variable "control_plane_patches" {
  description = "Patches of the control planes, as contract v1.13 has them."
  type        = list(string)
  default = [
    <<-EOT
      machine:
        nodeLabels:
          topology.kubernetes.io/zone: rack-4
        certSANs: [talos.example.com]
      cluster:
        # Cilium takes over.
        network: { cni: { name: none } }
        proxy: { disabled: true }
    EOT
  ]
}

locals {
  converted = provider::talosop::convert_patches(var.control_plane_patches, "controlplane", "v1.13", "v1.14")
}

# Write these into files, and use the files as config_patches together with version_contract = "v1.14".
output "patches" {
  value = local.converted.patches
}

# The fields that stay in the main document, such as machine.certSANs, and why.
output "kept" {
  value = [for part in local.converted.kept : "${part.path}: ${part.reason}"]
}
