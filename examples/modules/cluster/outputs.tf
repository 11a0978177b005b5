output "cluster" {
  description = "The handle, for talosop_worker, talosop_addon, backups and credentials. It has the secrets of the cluster in it."
  value       = talosop_cluster.this.cluster
  sensitive   = true
}

output "phase" {
  description = "How far the cluster has come; Ready when it can be used."
  value       = talosop_cluster.this.phase
}

output "nodes" {
  description = "The Kubernetes nodes with the versions that they run."
  value = {
    for name, machine in talosop_cluster.this.observed : name => {
      node    = machine.node_name
      talos   = machine.talos_version
      kubelet = machine.kubernetes_version
    }
  }
}
