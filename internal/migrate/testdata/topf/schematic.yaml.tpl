customization:
  extraKernelArgs: ["node={{ .Node.Host }}"]
  systemExtensions:
    officialExtensions: [siderolabs/qemu-guest-agent]
