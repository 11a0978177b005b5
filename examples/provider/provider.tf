terraform {
  required_version = ">= 1.11"
  required_providers {
    talosop = {
      source = "talosop/talosop"
    }
  }
}

# There is nothing to configure: every resource carries the addresses and secrets it needs.
provider "talosop" {}
