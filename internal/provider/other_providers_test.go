package provider_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	resourcepkg "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// The registries of other providers are unavailable in tests. The stand-ins for hashicorp/kubernetes and
// hashicorp/helm take the same arguments (kubernetes 2.36, helm 3.0), and connect with them as soon as they are
// known. They create a ConfigMap for any resource. They show that the credentials arrive and are accepted, and
// nothing of what those providers do then.

// connection is the connection arguments of both.
type connection struct {
	Host                 types.String `tfsdk:"host"`
	TLSServerName        types.String `tfsdk:"tls_server_name"`
	ClusterCACertificate types.String `tfsdk:"cluster_ca_certificate"`
	ClientCertificate    types.String `tfsdk:"client_certificate"`
	ClientKey            types.String `tfsdk:"client_key"`
}

func connectionAttributes() map[string]providerschema.Attribute {
	attributes := map[string]providerschema.Attribute{}
	for _, name := range []string{
		"host", "tls_server_name", "cluster_ca_certificate", "client_certificate", "client_key",
	} {
		attributes[name] = providerschema.StringAttribute{Optional: true}
	}

	return attributes
}

// standIn is a provider that replaces another one.
type standIn struct {
	name, resource string
	schema         schema.Schema
	// nested is the attribute that contains the connection; "" for none.
	nested string
}

func (p standIn) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = p.name
}

func (p standIn) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema.Attributes = connectionAttributes()
	if p.nested != "" {
		resp.Schema.Attributes = map[string]providerschema.Attribute{
			p.nested: providerschema.SingleNestedAttribute{Optional: true, Attributes: connectionAttributes()},
		}
	}
}

func (p standIn) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var c connection

	if p.nested == "" {
		resp.Diagnostics.Append(req.Config.Get(ctx, &c)...)
	} else {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(p.nested), &c)...)
	}

	if resp.Diagnostics.HasError() || c.Host.IsUnknown() {
		return // as the others do in a plan with an unknown cluster
	}

	api, err := kubernetes.NewForConfig(&rest.Config{Host: c.Host.ValueString(), TLSClientConfig: rest.TLSClientConfig{
		ServerName: c.TLSServerName.ValueString(), CAData: []byte(c.ClusterCACertificate.ValueString()),
		CertData: []byte(c.ClientCertificate.ValueString()), KeyData: []byte(c.ClientKey.ValueString()),
	}})
	if err != nil {
		resp.Diagnostics.AddError("No connection", err.Error())
	}

	resp.ResourceData = api
}

func (p standIn) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (p standIn) Resources(context.Context) []func() resourcepkg.Resource {
	return []func() resourcepkg.Resource{func() resourcepkg.Resource { return &standInResource{standIn: p} }}
}

// standInResource is a ConfigMap.
type standInResource struct {
	standIn

	api *kubernetes.Clientset
}

func (r *standInResource) Metadata(
	_ context.Context, _ resourcepkg.MetadataRequest, resp *resourcepkg.MetadataResponse,
) {
	resp.TypeName = r.resource
}

func (r *standInResource) Schema(_ context.Context, _ resourcepkg.SchemaRequest, resp *resourcepkg.SchemaResponse) {
	resp.Schema = r.schema
}

func (r *standInResource) Configure(
	_ context.Context, req resourcepkg.ConfigureRequest, _ *resourcepkg.ConfigureResponse,
) {
	r.api, _ = req.ProviderData.(*kubernetes.Clientset)
}

func (r *standInResource) Create(
	ctx context.Context, req resourcepkg.CreateRequest, resp *resourcepkg.CreateResponse,
) {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + r.name}}
	if _, err := r.api.CoreV1().ConfigMaps("default").Create(ctx, made, metav1.CreateOptions{}); err != nil {
		resp.Diagnostics.AddError("Not created", err.Error())

		return
	}

	resp.State.Raw = req.Plan.Raw
}

func (r *standInResource) Read(ctx context.Context, _ resourcepkg.ReadRequest, resp *resourcepkg.ReadResponse) {
	if _, err := r.api.CoreV1().ConfigMaps("default").Get(ctx, "of-"+r.name, metav1.GetOptions{}); err != nil {
		resp.Diagnostics.AddError("Not read", err.Error())
	}
}

func (r *standInResource) Update(
	_ context.Context, req resourcepkg.UpdateRequest, resp *resourcepkg.UpdateResponse,
) {
	resp.State.Raw = req.Plan.Raw
}

func (r *standInResource) Delete(
	ctx context.Context, _ resourcepkg.DeleteRequest, resp *resourcepkg.DeleteResponse,
) {
	if err := r.api.CoreV1().ConfigMaps("default").Delete(ctx, "of-"+r.name, metav1.DeleteOptions{}); err != nil {
		resp.Diagnostics.AddError("Not deleted", err.Error())
	}
}

// standIns are the providers of the example.
func standIns() []standIn {
	text := schema.StringAttribute{Optional: true}

	return []standIn{
		{name: "kubernetes", resource: "kubernetes_config_map_v1", schema: schema.Schema{
			Attributes: map[string]schema.Attribute{
				"data": schema.MapAttribute{Optional: true, ElementType: types.StringType},
			},
			Blocks: map[string]schema.Block{"metadata": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{
				Attributes: map[string]schema.Attribute{"name": text, "namespace": text},
			}}},
		}},
		{name: "helm", resource: "helm_release", nested: "kubernetes", schema: schema.Schema{
			Attributes: map[string]schema.Attribute{
				"name": text, "namespace": text, "repository": text, "chart": text, "version": text,
			},
		}},
	}
}

// serveStandIns serves the providers of the example to the commands of a workspace, until the test ends.
func serveStandIns(t *testing.T, w *clitest.Workspace, cli clitest.CLI) {
	t.Helper()

	served := map[string]func() tfprotov6.ProviderServer{}
	for _, p := range standIns() {
		served["hashicorp/"+p.name] = providerserver.NewProtocol6(p)
	}

	serveOthers(t, w, cli, served)
}

// serveOthers serves other providers, by namespace and name, to the commands of a workspace until the test ends.
func serveOthers(
	t *testing.T, w *clitest.Workspace, cli clitest.CLI, others map[string]func() tfprotov6.ProviderServer,
) {
	t.Helper()

	host := map[string]string{"terraform": "registry.terraform.io", "tofu": "registry.opentofu.org"}[cli.Name]
	attached := map[string]any{}

	for name, server := range others {
		address := host + "/" + name
		served, closed := make(chan *plugin.ReattachConfig), make(chan struct{})

		go func() {
			if err := tf6server.Serve(address, server, tf6server.WithDebug(t.Context(), served, closed),
				tf6server.WithLoggingSink(t), tf6server.WithoutLogStderrOverride()); err != nil {
				t.Errorf("serve %s: %v", address, err)
			}
		}()

		config := <-served
		attached[address] = map[string]any{
			"Protocol": "grpc", "ProtocolVersion": 6, "Pid": config.Pid, "Test": true,
			"Addr": map[string]string{"Network": config.Addr.Network(), "String": config.Addr.String()},
		}

		t.Cleanup(func() { <-closed }) // the context of the test has ended by then
	}

	w.Setenv("TF_REATTACH_PROVIDERS", tftest.JSON(t, attached))
}

// In the example for other providers, they connect in the apply that creates the cluster, in the next plan, and in
// the destroy, and no credentials are stored.
func TestAccOtherProviders_connectWithTheExample(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: machineconfig.CurrentTalos}, 1, 0)
		w := clitest.NewWorkspace(t, cli)
		w.CopyFrom("../../examples/guides/other-providers")
		w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{
			"endpoint": s.URL, "control_planes": sitetest.Addresses(s.ControlPlane), "deletion_protection": false,
		}))
		serveStandIns(t, w, cli)
		w.Init()

		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), fmt.Sprintf("%d added", 2+len(standIns())))
		sitetest.ExpectNoChanges(t, w, "after the create")

		for _, r := range w.State().Values.RootModule.Resources {
			if r.Type == "talosop_kubeconfig" {
				t.Errorf("%s is in state", r.Address)
			}
		}

		w.MustRun("destroy", "-auto-approve")
	})
}
