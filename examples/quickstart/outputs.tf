output "phase" {
  description = "How far the cluster has come; Ready when it can be used."
  value       = talosop_control_plane.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with what runs on them."
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
  description = "What to type next."
  value       = "kubectl --kubeconfig ${talosop_kubeconfig_file.this.path} get nodes"
}
