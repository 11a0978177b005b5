package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ datasource.DataSource              = (*upgradeChecksDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*upgradeChecksDataSource)(nil)
)

// NewUpgradeChecksDataSource is the constructor of the data source talosop_upgrade_checks.
func NewUpgradeChecksDataSource() datasource.DataSource { return &upgradeChecksDataSource{} }

// upgradeChecksDataSource finds what an upgrade of a cluster would run into.
type upgradeChecksDataSource struct {
	providerdata.ConfiguredDataSource
}

func (d *upgradeChecksDataSource) Metadata(
	_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_upgrade_checks"
}

func (d *upgradeChecksDataSource) Schema(
	ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse,
) {
	resp.Schema = examinedSchema(ctx, "What an upgrade of a cluster would run into: objects that block or break it, and "+
		"uses of what the new versions lack. It reads once and changes nothing, and an unreachable cluster is a result, "+
		"not an error. The [guide to rehearsals](../guides/rehearsals.md) lists the problems.", upgradeChecksAttributes())
}

func (d *upgradeChecksDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config upgradeChecksModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	limit, more := tf.ReadLimit(ctx, config.Timeouts, defaultExamination)
	resp.Diagnostics.Append(more...)

	handle, bundle, diags := d.ClusterOf(ctx, config.Cluster)
	resp.Diagnostics.Append(diags...)

	p := providerdata.OfHandle(handle, "cluster", &resp.Diagnostics)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, handle.Secrets.ValueString()), limit)
	defer cancel()

	problems, err := d.problems(ctx, p, bundle, config)
	if endpoint := (providerdata.EndpointError{}); errors.As(err, &endpoint) {
		resp.Diagnostics.Append(tf.Diagnostic(clusterNotRead.At(finding.Root("cluster").AtName("endpoint"),
			finding.Args{"cluster": p.Settings.Name, "cause": err.Error()})))

		return
	}

	config.Fill(problems, err == nil)

	if err != nil {
		seen := examined{Name: p.Settings.Name}
		resp.Diagnostics.Append(seen.partly(strings.Split(err.Error(), "\n"), "problems")...)
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}

// problems asks every source. The error is about those that did not answer.
func (d *upgradeChecksDataSource) problems(
	ctx context.Context, p machineset.Set, bundle *pki.Bundle, config upgradeChecksModel,
) ([]upgrade.Problem, error) {
	want := providerdata.ControlPlanesOf(p)
	if _, over := ended(want, bundle, time.Now()); over {
		return nil, errors.New("the certificate authorities of the cluster have expired")
	}

	reading := *d.ProviderData
	reading.Talos.TrustNodeNames = true

	c, err := reading.ClientsOf(ctx, pki.CheckingSecrets, p, machineset.PriorState{}, bundle, api.Options{})
	if err != nil {
		return nil, err
	}

	defer c.Close()

	problems, err := c.FailingComponents(ctx, want.Machines)
	add := func(found []upgrade.Problem, unread error) {
		problems, err = append(problems, found...), errors.Join(err, unread)
	}

	to := config.KubernetesVersion.ValueString()

	minors, unread := minorsTo(ctx, c.API.Client, to)
	if unread != nil {
		return problems, errors.Join(err, unread)
	}

	found, unread := c.UpgradeChecks(ctx, want.Machines, minors)
	add(found.AllProblems(), unread)
	add(c.API.ExpiredSecrets(ctx))

	if to != "" {
		add(unsuited(ctx, c.API, to))
	}

	pods, unread := c.API.UnreadyPods(ctx)
	for _, pod := range pods {
		problems = append(problems, upgrade.Problem{Code: upgrade.PodCode, Object: pod.Object.String(), Reason: pod.Reason})
	}

	add(nil, unread)

	if official, given := tf.KnownStrings(config.Extensions); given && !config.Extensions.IsNull() {
		add(c.API.MissingExtensions(ctx, official))
	}

	return problems, err
}

// unsuited are the Helm releases whose chart is not for a version of Kubernetes.
func unsuited(ctx context.Context, client *kubernetes.Client, to string) ([]upgrade.Problem, error) {
	charts, err := (&release.Cluster{API: client}).Unsuited(ctx, to)

	var problems []upgrade.Problem
	for _, u := range charts {
		problems = append(problems, upgrade.Problem{Code: upgrade.ChartCode, Object: "Helm release " + u.String(),
			Reason: fmt.Sprintf("chart %s %s is for Kubernetes %s", u.Chart, u.Version, u.Allowed)})
	}

	return problems, err
}

// minorsTo are the steps of an upgrade from the version of the API server; none without a version to reach.
func minorsTo(ctx context.Context, client *api.Client, version string) ([][2]string, error) {
	if version == "" {
		return nil, nil
	}

	running, err := client.Version(ctx)
	if err != nil {
		return nil, err
	}

	from, err := machineconfig.ParseKubernetesVersion(running)
	to, invalid := machineconfig.ParseKubernetesVersion(version)
	path := machineset.KubernetesPath{Lowest: from, To: to, Releases: machineconfig.KubernetesReleases(to, nil)}

	return machineset.UpgradeOf{Path: path}.Minors(), errors.Join(err, invalid)
}
