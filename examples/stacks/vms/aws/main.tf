# EC2 instances from a Talos image. The API does not return their SMBIOS UUID, so talosop remembers the first one that it sees. To
# replace an instance, use another name in vms.

terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "vms" {
  type = map(object({ role = string, subnet_id = string, type = optional(string, "m7i.large") }))
}

variable "vpc_id" {
  type    = string
  default = "vpc-0123456789abcdef0"
}

variable "admin_networks" {
  description = "Networks that may reach the Talos API (Terraform) and the Kubernetes API (kubectl)."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

data "aws_ami" "talos" {
  most_recent = true
  owners      = ["540036508848"] # Sidero Labs

  filter {
    name   = "name"
    values = ["talos-v1.14.1-*-amd64"]
  }
}

# Any client that reaches a machine in maintenance mode can configure it. The machines can reach each other.
resource "aws_security_group" "this" {
  name   = "talos"
  vpc_id = var.vpc_id

  dynamic "ingress" {
    for_each = [50000, 6443]

    content {
      protocol    = "tcp"
      from_port   = ingress.value
      to_port     = ingress.value
      cidr_blocks = var.admin_networks
    }
  }

  ingress {
    protocol  = "-1"
    from_port = 0
    to_port   = 0
    self      = true
  }

  egress {
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "this" {
  for_each = var.vms

  ami                    = data.aws_ami.talos.id
  instance_type          = each.value.type
  subnet_id              = each.value.subnet_id
  vpc_security_group_ids = [aws_security_group.this.id]
  tags                   = { Name = each.key }

  # Pods with their own address are one hop further from the metadata service than the machine.
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_size = 40
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [ami] # a new image is only for new instances; talosop upgrades running ones
  }
}

output "machines" {
  value = { for name, vm in aws_instance.this : name => { address = vm.private_ip } }
}

output "install" {
  value = null # the VM boots from its disk image
}

output "platform" {
  value = "aws"
}
