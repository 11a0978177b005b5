# Instances of EC2 from an image of Talos. The API does not tell the UUID of their SMBIOS: talosop remembers the one that it saw
# first, and an instance in the place of another one gets another name in vms.

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
  description = "Networks from which Terraform reaches the Talos API, and kubectl the Kubernetes API."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

data "aws_ami" "talos" {
  most_recent = true
  owners      = ["540036508848"] # Sidero Labs

  filter {
    name   = "name"
    values = ["talos-v1.13.0-*-amd64"]
  }
}

# A machine in maintenance mode takes its configuration from anybody who reaches it. Among themselves they reach each other.
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

  # Pods with an address of their own are one hop further from the metadata than the machine.
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_size = 40
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [ami] # another image is for new instances: talosop upgrades those that run
  }
}

output "machines" {
  value = { for name, vm in aws_instance.this : name => { address = vm.private_ip } }
}

output "install" {
  value = null # the disk is the image
}

output "platform" {
  value = "aws"
}
