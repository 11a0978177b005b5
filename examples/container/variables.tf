variable "kubeconfig" {
  description = "Kubeconfig file of the host cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "context" {
  description = "Context in the kubeconfig file."
  type        = string
  default     = "kind-talosop"
}

variable "namespace" {
  description = "Namespace of the pods in the host cluster. talosop creates and deletes it."
  type        = string
  default     = "talos"
}

variable "image" {
  description = "Talos image for containers, without a tag."
  type        = string
  default     = "ghcr.io/siderolabs/talos"
}

variable "storage_class" {
  description = "Storage class of the volumes. null uses the default of the host cluster."
  type        = string
  default     = null
}

variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
  default     = "dev"
}

variable "control_planes" {
  description = "Number of control planes. Use an odd number."
  type        = number
  default     = 1
}

variable "workers" {
  description = "Number of workers."
  type        = number
  default     = 1
}

variable "talos_version" {
  description = "Talos version of the machines."
  type        = string
  default     = "v1.14.1"
}

variable "kubernetes_version" {
  description = "Kubernetes version of the cluster."
  type        = string
  default     = "v1.37.0"
}

variable "config_patches" {
  description = "Patches for the configuration of all machines, as YAML."
  type        = list(string)
  default     = []
}
