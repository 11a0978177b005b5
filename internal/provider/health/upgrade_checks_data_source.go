package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"

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

// NewUpgradeChecksDataSource is the constructor of the data source talosop_upgrade_checks.
func NewUpgradeChecksDataSource() datasource.DataSource {
	return &providerdata.DataSource[upgradeChecksModel]{
		Name: "upgrade_checks",
		Description: "What an upgrade of a cluster would run into: objects that block or break it, and " +
			"uses of what the new versions lack. It reads once and changes nothing, and an unreachable cluster is a result, " +
			"not an error. The [guide to rehearsals](../guides/rehearsals.md) lists the problems.",
		Attributes: upgradeChecksAttributes,
		Timeout:    examinedTimeout,
		Look:       checkUpgrade,
	}
}

// checkUpgrade finds what an upgrade of a cluster would run into.
func checkUpgrade(ctx context.Context, m *providerdata.ProviderData, config *upgradeChecksModel) diag.Diagnostics {
	limit, diags := tf.ReadLimit(ctx, config.Timeouts, defaultExamination)

	handle, bundle, more := m.ClusterOf(ctx, config.Cluster)
	diags.Append(more...)

	p := providerdata.OfHandle(handle, "cluster", &diags)

	if diags.HasError() {
		return diags
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, handle.Secrets.ValueString()), limit)
	defer cancel()

	problems, err := upgradeProblems(ctx, m, p, bundle, *config)
	if endpoint := (providerdata.EndpointError{}); errors.As(err, &endpoint) {
		return append(diags, tf.Diagnostic(clusterNotRead.At(finding.Root("cluster").AtName("endpoint"),
			finding.Args{"cluster": p.Settings.Name, "cause": err.Error()})))
	}

	config.Fill(problems, err == nil)

	if err != nil {
		seen := examined{Name: p.Settings.Name}
		diags.Append(seen.partly(strings.Split(err.Error(), "\n"), "problems")...)
	}

	return diags
}

// upgradeProblems asks every source. The error is about those that did not answer.
func upgradeProblems(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, bundle *pki.Bundle, config upgradeChecksModel,
) ([]upgrade.Problem, error) {
	want := providerdata.ControlPlanesOf(p)
	if _, over := ended(want, bundle, time.Now()); over {
		return nil, errors.New("the certificate authorities of the cluster have expired")
	}

	reading := *m
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
