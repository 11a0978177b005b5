output "phase" {
  description = "Phase of the cluster. Ready means that you can use it."
  value       = talosop_control_plane.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with their versions."
  value = merge([
    for pool in [talosop_control_plane.this, talosop_worker.this] : {
      for name, machine in pool.observed : name => {
        node    = machine.node_name
        talos   = pool.observed_talos_versions[name]
        kubelet = pool.observed_kubernetes_versions[name]
        ready   = machine.ready
      }
    }
  ]...)
}

output "kubectl" {
  description = "Commands to run next."
  value       = "kubectl --kubeconfig ${talosop_kubeconfig_file.this.path} get nodes"
}
