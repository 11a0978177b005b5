versions = {
  talos      = "v1.12.12"
  kubernetes = "v1.35.4"
}
