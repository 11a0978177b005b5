variable "config_patches" {
  description = "Patches of the machine configuration."
  type        = list(string)
  default     = []

  validation {
    # A patch that is wrong fails here, with what is wrong with it.
    condition     = alltrue([for patch in var.config_patches : provider::talosop::validate_patch(patch, "v1.13.0")])
    error_message = "Each element has to be a patch of the machine configuration."
  }
}
