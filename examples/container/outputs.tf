output "phase" {
  description = "Phase of the cluster. Ready means that you can use it."
  value       = talosop_cluster.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with their versions."
  value = {
    for name, machine in talosop_cluster.this.observed : name => {
      node    = machine.node_name
      talos   = machine.talos_version
      kubelet = machine.kubernetes_version
      ready   = machine.ready
    }
  }
}
