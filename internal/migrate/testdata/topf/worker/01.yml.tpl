machine:
  kubelet:
    extraArgs: {v: "2"}
  disks: [{device: {{ .Node.Data.disk }}, partitions: [{mountpoint: /var/mnt/old}]}]
