variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
  default     = "quickstart"
}

variable "endpoint" {
  description = "URL of the Kubernetes API: a virtual IP, a load balancer or the first control plane, with port 6443."
  type        = string
}

variable "control_planes" {
  description = "Addresses of the control planes by name. Use an odd number."
  type        = map(string)
}

variable "workers" {
  description = "Addresses of the workers by name. Without workers, the control planes run the pods."
  type        = map(string)
  default     = {}
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

variable "install_disk" {
  description = "Disk for Talos. The installation wipes it."
  type        = string
  default     = "/dev/sda"
}

variable "config_patches" {
  description = "Patches for the configuration of all machines, as YAML."
  type        = list(string)
  default     = []
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}
