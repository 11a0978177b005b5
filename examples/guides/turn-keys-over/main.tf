resource "talosop_secrets" "prod" {
  rotate = {
    talos_ca      = "2026-11"
    kubernetes_ca = "2026-11"
  }
}
