package provider_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	resourcepkg "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// shape is what the examples use of a resource or block of another provider: the names of arguments and attributes,
// and the blocks. Their types are unknown.
type shape struct {
	names  string
	blocks map[string]shape
}

// block is the shape in the protocol.
func (s shape) block() *tfprotov6.SchemaBlock {
	block := &tfprotov6.SchemaBlock{}

	for _, name := range strings.Fields(s.names) {
		block.Attributes = append(block.Attributes,
			&tfprotov6.SchemaAttribute{Name: name, Type: tftypes.DynamicPseudoType, Optional: true, Computed: true})
	}

	for name, nested := range s.blocks {
		block.BlockTypes = append(block.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Block: nested.block(), Nesting: tfprotov6.SchemaNestedBlockNestingModeList,
		})
	}

	return block
}

// shaped is a provider that knows shapes and can do nothing with them. It leaves other requests to nothing.
type shaped struct {
	tfprotov6.ProviderServer

	resources, data map[string]shape
}

// nothing is a provider without resources.
type nothing struct{}

func (nothing) Metadata(context.Context, provider.MetadataRequest, *provider.MetadataResponse) {}

func (nothing) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (nothing) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (nothing) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (nothing) Resources(context.Context) []func() resourcepkg.Resource { return nil }

func (p shaped) serve() tfprotov6.ProviderServer {
	p.ProviderServer = providerserver.NewProtocol6(nothing{})()

	return p
}

func (p shaped) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	of := func(shapes map[string]shape) map[string]*tfprotov6.Schema {
		schemas := map[string]*tfprotov6.Schema{}
		for name, s := range shapes {
			schemas[name] = &tfprotov6.Schema{Block: s.block()}
		}

		return schemas
	}

	return &tfprotov6.GetProviderSchemaResponse{
		Provider:        &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}},
		ResourceSchemas: of(p.resources), DataSourceSchemas: of(p.data),
	}, nil
}

func (shaped) ValidateResourceConfig(
	context.Context, *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (shaped) ValidateDataResourceConfig(
	context.Context, *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

// clouds are the providers of the examples, as documented: libvirt 0.9.2, aws 5.0, proxmox 0.80 and hcloud 1.57. The
// last two also accepted the examples as real providers.
func clouds() map[string]shaped {
	rule := shape{names: "protocol from_port to_port cidr_blocks self"}

	return map[string]shaped{
		"bpg/proxmox": {resources: map[string]shape{
			"proxmox_virtual_environment_download_file": {
				names: "id node_name datastore_id content_type file_name url decompression_algorithm overwrite",
			},
			"proxmox_virtual_environment_vm": {names: "name node_name stop_on_destroy", blocks: map[string]shape{
				"smbios": {names: "uuid"}, "cpu": {names: "cores type"}, "memory": {names: "dedicated"},
				"disk":             {names: "datastore_id file_id interface size"},
				"network_device":   {names: "bridge"},
				"operating_system": {names: "type"},
				"initialization": {names: "datastore_id", blocks: map[string]shape{
					"ip_config": {blocks: map[string]shape{"ipv4": {names: "address gateway"}}},
				}},
			}},
		}},
		"dmacvicar/libvirt": {
			resources: map[string]shape{
				"libvirt_volume": {names: "name pool capacity target create backing_store path"},
				"libvirt_domain": {names: "name type memory memory_unit vcpu running autostart os cpu devices uuid"},
			},
			data: map[string]shape{"libvirt_domain_interface_addresses": {names: "domain source interfaces"}},
		},
		"hetznercloud/hcloud": {
			resources: map[string]shape{
				"hcloud_firewall": {names: "id name", blocks: map[string]shape{
					"rule": {names: "direction protocol port source_ips"},
				}},
				"hcloud_server": {names: "name server_type location image firewall_ids ipv4_address"},
			},
			data: map[string]shape{"hcloud_image": {names: "id with_selector most_recent"}},
		},
		"hashicorp/aws": {
			resources: map[string]shape{
				"aws_security_group": {names: "id name vpc_id", blocks: map[string]shape{"ingress": rule, "egress": rule}},
				"aws_instance": {
					names: "ami instance_type subnet_id vpc_security_group_ids tags private_ip",
					blocks: map[string]shape{
						"metadata_options":  {names: "http_tokens http_put_response_hop_limit"},
						"root_block_device": {names: "volume_size"},
					},
				},
			},
			data: map[string]shape{"aws_ami": {names: "id most_recent owners", blocks: map[string]shape{
				"filter": {names: "name values"},
			}}},
		},
	}
}

// inAllClouds is a stack on the VMs of every cloud of the examples.
const inAllClouds = `
module "aws" {
  source = "./aws"
  vms    = { cp-1 = { role = "controlplane", subnet_id = "subnet-1" } }
}

module "hetzner" {
  source = "./hetzner"
  vms    = { cp-1 = { role = "controlplane" } }
}

module "libvirt" {
  source = "./libvirt"
  vms    = { cp-1 = { role = "controlplane" } }
}

module "proxmox" {
  source = "./proxmox"
  vms    = { cp-1 = { role = "controlplane", node = "pve", address = "10.0.0.11/24", gateway = "10.0.0.1" } }
}

module "clusters" {
  for_each = { aws = module.aws, hetzner = module.hetzner, libvirt = module.libvirt, proxmox = module.proxmox }
  source   = "../../modules/cluster"

  name           = each.key
  endpoint       = "https://10.0.0.10:6443"
  control_planes = { for name in ["cp-1"] : name => each.value.machines[name] }
  install        = each.value.install
  platform       = each.value.platform
}
`

// The modules with the real resources of clouds fit in place of the applied one: the names they use exist, and a VM
// that is removed ends after the cluster has changed.
func TestAccExamples_clouds(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/vms")
		w.Write("main.tf", inAllClouds)

		others := map[string]func() tfprotov6.ProviderServer{}
		for name, p := range clouds() {
			others[name] = p.serve
		}

		serveOthers(t, w, cli, others)
		w.Init()
		w.MustRun("validate")

		for _, cloud := range []string{"aws", "hetzner", "libvirt", "proxmox"} {
			if !strings.Contains(w.Read(cloud+"/*.tf"), "create_before_destroy = true") {
				t.Errorf("a VM of %s goes before its machine was drained", cloud)
			}
		}
	})
}
