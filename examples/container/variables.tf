variable "kubeconfig" {
  description = "Kubeconfig file of the host cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "context" {
  description = "Context of that file."
  type        = string
  default     = "kind-talosop"
}

variable "namespace" {
  description = "Namespace of the host cluster that the pods run in; made, and removed again, by talosop."
  type        = string
  default     = "talos"
}

variable "image" {
  description = "Image of Talos for containers, without a tag."
  type        = string
  default     = "ghcr.io/siderolabs/talos"
}

variable "storage_class" {
  description = "Storage class of the volumes; null is the host cluster's default."
  type        = string
  default     = null
}

variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
  default     = "dev"
}

variable "control_planes" {
  description = "How many control planes; an odd number."
  type        = number
  default     = 1
}

variable "workers" {
  description = "How many workers."
  type        = number
  default     = 1
}

variable "talos_version" {
  description = "Talos version that the machines run."
  type        = string
  default     = "v1.13.0"
}

variable "kubernetes_version" {
  description = "Kubernetes version of the cluster."
  type        = string
  default     = "v1.36.3"
}

variable "config_patches" {
  description = "Patches of every machine's configuration, as YAML."
  type        = list(string)
  default     = []
}
