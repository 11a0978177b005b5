output "phase" {
  description = "Phase of the cluster. Ready means that you can use it."
  value       = talosop_control_plane.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with their versions."
  value = {
    for name, machine in merge(talosop_control_plane.this.observed, talosop_worker.this.observed) : name => {
      node    = machine.node_name
      talos   = machine.talos_version
      kubelet = machine.kubernetes_version
      ready   = machine.ready
    }
  }
}

output "kubectl" {
  description = "Commands to run next."
  value       = "kubectl --kubeconfig ${talosop_kubeconfig_file.this.path} get nodes"
}
