variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "endpoint" {
  description = "URL of the Kubernetes API: of a load balancer, a DNS name or the first control plane, with port 6443. Not with virtual_ip."
  type        = string
  default     = null
}

variable "virtual_ip" {
  description = "Address that the control planes hold among themselves, and the link that it is on."
  type        = object({ address = string, link = string })
  default     = null

  validation {
    condition     = (var.virtual_ip == null) != (var.endpoint == null)
    error_message = "Set endpoint or virtual_ip, and not both."
  }
}

variable "versions" {
  description = "Versions of Talos and Kubernetes. Raise them to upgrade."
  type        = object({ talos = string, kubernetes = string })
  default     = { talos = "v1.13.0", kubernetes = "v1.36.3" }
}

variable "control_planes" {
  description = "The control planes by name, an odd number. With a uuid no other hardware is taken."
  type        = map(object({ address = string, uuid = optional(string), config_patches = optional(list(string)) }))

  validation {
    condition     = length(var.control_planes) % 2 == 1
    error_message = "etcd keeps its quorum best with an odd number of control planes."
  }
}

variable "workers" {
  description = "The workers, by pool and name."
  type        = map(map(object({ address = string, uuid = optional(string), config_patches = optional(list(string)) })))
  default     = {}
}

variable "install" {
  description = "Disk that Talos is installed to; everything on it is lost. null for machines that booted from their disk, as those of clouds do."
  type        = object({ disk = string })
  default     = { disk = "/dev/sda" }
}

variable "appear_within" {
  description = "How long machines may refuse connections before a create fails, such as 10m for VMs of the same apply; 10s unless it is set."
  type        = string
  default     = null
}

variable "platform" {
  description = "Platform of the installer images of the Image Factory, such as nocloud or aws; metal unless it is set."
  type        = string
  default     = null
}

variable "cni" {
  description = "Network plugin; null for Flannel, { name = \"none\" } for one that an addon brings."
  type        = object({ name = string })
  default     = null
}

variable "air_gapped" {
  description = "Whether the machines reach no public network."
  type        = bool
  default     = false
}

variable "registries" {
  description = "Mirrors of registries, and whom to trust, as the argument of talosop_cluster."
  type        = any
  default     = null
}

variable "config_patches" {
  description = "Patches of every machine's configuration, as YAML."
  type        = list(string)
  default     = []
}

variable "restore_from" {
  description = "Snapshot of etcd that the cluster begins with, in a file or a bucket."
  type = object({
    file   = optional(object({ path = string }))
    s3     = optional(object({ bucket = string, key = string, region = optional(string), endpoint = optional(string) }))
    sha256 = optional(string)
  })
  default = null
}

variable "restore_identities" {
  description = "Secret keys of age that open it."
  type        = list(string)
  default     = null
  ephemeral   = true
}

variable "deletion_protection" {
  description = "Refuse to destroy the cluster and its secrets. Set it to false and apply before destroying."
  type        = bool
  default     = true
}
