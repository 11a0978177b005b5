output "phase" {
  description = "Phase of the cluster. Ready means that you can use it."
  value       = talosop_cluster.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with their versions."
  value = {
    for name, machine in talosop_cluster.this.observed : name => {
      node    = machine.node_name
      talos   = talosop_cluster.this.observed_talos_versions[name]
      kubelet = talosop_cluster.this.observed_kubernetes_versions[name]
      ready   = machine.ready
    }
  }
}
