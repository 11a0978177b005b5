output "phase" {
  description = "How far the cluster has come; Ready when it can be used."
  value       = talosop_cluster.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with what runs on them."
  value = {
    for name, machine in talosop_cluster.this.observed : name => {
      node    = machine.node_name
      talos   = machine.talos_version
      kubelet = machine.kubernetes_version
      ready   = machine.ready
    }
  }
}
