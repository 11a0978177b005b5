# ["v1.12.12", "v1.13.9", "v1.14.1"]
output "steps" {
  value = provider::talosop::upgrade_path("v1.11.3", "v1.14.1", "v1.13.9")
}
