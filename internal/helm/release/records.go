package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// labelInputs has the mark of what went into a revision.
	labelInputs = "talosop.dev/inputs"
	// labelRevision is the number of the marked revision. Helm copies the labels of a record to every later
	// record, and a mark counts for its own revision only (Helm 3.21, action/upgrade.go, mergeCustomLabels;
	// action/rollback.go, prepareRollback).
	labelRevision = "talosop.dev/revision"
	// labelRemoving is the number of the revision that talosop began to uninstall.
	labelRemoving = "talosop.dev/removing"
	// labelFormer is the number of the revision that was begun to be uninstalled, and the status
	// that it had before: Helm writes over it, and what was never deployed is to be installed.
	labelFormer = "talosop.dev/former"
	// InputsOfAnother marks a revision that talosop made by rolling a release back to a revision of another
	// client.
	InputsOfAnother = "another"
	// recordPrefix of the names of records (Helm 3.21, storage.HelmStorageType).
	recordPrefix = "sh.helm.release.v1"
)

// recordName is the name of the Secret of a revision (Helm 3.21, storage.makeKey).
func recordName(release string, revision int) string {
	return fmt.Sprintf("%s.%s.v%d", recordPrefix, release, revision)
}

// Observe reads the history of a release. Records that cannot be read are in it as [Unreadable],
// and hide no others. The error is [kubernetes.ErrNoAnswer] when the cluster cannot be reached.
func (c *Cluster) Observe(ctx context.Context, name Name) (Observation, error) {
	secrets, err := c.records(ctx, name)
	if err != nil {
		return Observation{}, err
	}

	slices.SortFunc(secrets, func(a, b map[string]any) int { return cmp.Compare(numberOf(name, a), numberOf(name, b)) })

	have := Observation{}
	for _, secret := range secrets {
		have.History = append(have.History, revisionOf(name, secret))
		have.records = append(have.records, versionOf(secret))
	}

	return have, nil
}

func versionOf(secret map[string]any) recordVersion {
	object := &unstructured.Unstructured{Object: secret}

	return recordVersion{name: object.GetName(), version: object.GetResourceVersion()}
}

// observeHeld is [Cluster.Observe] under the Lease of a release that was observed before. It does not list again
// what has not changed since. A client that works on a release writes its newest record, or the next one.
//
// A list waits up to a tenth of a second until the cache of the API server has the write to the Lease. A read of
// one object does not (Kubernetes 1.36, apiserver/pkg/storage/cacher, progressRequestPeriod).
func (c *Cluster) observeHeld(ctx context.Context, name Name, before Observation) (Observation, error) {
	next := 1

	if last, exists := before.Last(); exists {
		newest := before.records[len(before.records)-1]
		next = last.Number + 1

		live, err := c.record(ctx, name, newest.name)
		if err != nil || live == nil || versionOf(live) != newest {
			return c.Observe(ctx, name)
		}
	}

	if live, err := c.record(ctx, name, recordName(name.Name, next)); err != nil || live != nil {
		return c.Observe(ctx, name)
	}

	return before, nil
}

// record is one of the Secrets of a release, nil when it is not there.
func (c *Cluster) record(ctx context.Context, name Name, secret string) (map[string]any, error) {
	return c.API.GetObject(ctx,
		objects.Reference{APIVersion: "v1", Kind: "Secret", Namespace: name.Namespace, Name: secret})
}

// observeRetrying asks again for [Cluster.UnreachableTimeout] when no server answers: a control plane that is being
// changed may need that.
func (c *Cluster) observeRetrying(ctx context.Context, name Name) (have Observation, err error) {
	bound := cmp.Or(c.UnreachableTimeout, defaultUnreachableTimeout)

	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("timed out after %s", bound))
	defer cancel()

	err = wait.Until(ctx, c.pause(), func(ctx context.Context) (err error) {
		have, err = c.Observe(ctx, name)
		if errors.Is(err, api.ErrNoAnswer) {
			return err
		}

		return wait.Permanent(err)
	})

	return have, err
}

// records are the Secrets in which Helm keeps the history of a release.
func (c *Cluster) records(ctx context.Context, name Name) ([]map[string]any, error) {
	secrets, err := c.API.ListObjects(ctx,
		objects.Reference{APIVersion: "v1", Kind: "Secret", Namespace: name.Namespace},
		"owner=helm,name="+name.Name)
	if err != nil {
		return nil, fmt.Errorf("read the history of release %s: %w", name, err)
	}

	return secrets, nil
}

// record is what is needed of Helm's record of a revision (Helm 3.21, release.Release). The chart is
// most of it, and left out.
type record struct {
	Version int               `json:"version"`
	Info    *helmrelease.Info `json:"info"`
	Chart   struct {
		Metadata helmchart.Metadata `json:"metadata"`
	} `json:"chart"`
	Config   map[string]any      `json:"config"`
	Manifest string              `json:"manifest"`
	Hooks    []*helmrelease.Hook `json:"hooks"`
}

// revisionOf reads a record.
func revisionOf(name Name, secret map[string]any) Revision {
	object := &unstructured.Unstructured{Object: secret}
	labels := object.GetLabels()
	r := Revision{Number: revisionNumber(name, object.GetName(), labels), Status: Unreadable}

	read, err := decodeRecord(object)
	if err != nil {
		r.Description = err.Error()

		return r
	}

	objects, err := objectsOf(read, name.Namespace)
	if err != nil {
		r.Description = err.Error()

		return r
	}

	r = Revision{
		Number: read.Version, Status: read.Info.Status.String(),
		ChartName: read.Chart.Metadata.Name, ChartVersion: read.Chart.Metadata.Version,
		AppVersion: read.Chart.Metadata.AppVersion,
		Values:     read.Config, Objects: objects, Description: read.Info.Description,
		FirstDeployed: read.Info.FirstDeployed.Time, LastDeployed: read.Info.LastDeployed.Time,
		Deleted: read.Info.Deleted.Time,
		Changed: changed(read, labels), Notes: read.Info.Notes,
	}
	number := strconv.Itoa(r.Number)

	if labels[labelRevision] == number {
		r.Inputs = labels[labelInputs]
	}

	r.Made = object.GetCreationTimestamp().Time
	r.Removing, r.Former = labels[labelRemoving] == number, formerOf(labels, r.Number)

	return r
}

// revisionNumber of a record that may not be readable.
func revisionNumber(name Name, secret string, labels map[string]string) int {
	for _, text := range []string{labels["version"], strings.TrimPrefix(secret, recordPrefix+"."+name.Name+".v")} {
		if number, err := strconv.Atoi(text); err == nil {
			return number
		}
	}

	return 0
}

// objectsOf reads the manifest of a record, unless a better record followed. Those of a long history would be
// many, and no caller needs them.
func objectsOf(r *record, namespace string) ([]diff.Object, error) {
	if r.Info.Status == helmrelease.StatusSuperseded {
		return nil, nil
	}

	return diff.Parse(r.Manifest, namespace)
}

// decodeRecord is what Helm's storage does, which keeps it to itself, and drops records that it
// cannot read without a word (Helm 3.21, storage/driver/util.go, decodeRelease).
func decodeRecord(secret *unstructured.Unstructured) (*record, error) {
	encoded, _, err := unstructured.NestedString(secret.Object, "data", "release")
	if err != nil {
		return nil, err
	}

	content := []byte(encoded)
	// Once for the Secret, once by Helm.
	for range 2 {
		if content, err = base64.StdEncoding.DecodeString(string(content)); err != nil {
			return nil, err
		}
	}

	if bytes.HasPrefix(content, []byte{0x1f, 0x8b, 0x08}) {
		if content, err = expansion.Gunzip(content, client.LargestRecord); err != nil {
			return nil, err
		}
	}

	read := &record{}
	if err := json.Unmarshal(content, read); err != nil {
		// The text of the error may quote the record.
		return nil, errors.New("the record is not the JSON of a release")
	}

	if read.Version == 0 || read.Info == nil {
		return nil, errors.New("the record has no revision or no status")
	}

	return read, nil
}

// changed is the newest of the times in a record: hooks can take longer than everything else, and
// each one's begin and end is written.
func changed(r *record, labels map[string]string) time.Time {
	newest := r.Info.LastDeployed.Time

	times := []time.Time{r.Info.Deleted.Time}
	for _, h := range r.Hooks {
		times = append(times, h.LastRun.StartedAt.Time, h.LastRun.CompletedAt.Time)
	}

	for _, label := range []string{"createdAt", "modifiedAt"} {
		if seconds, err := strconv.ParseInt(labels[label], 10, 64); err == nil {
			times = append(times, time.Unix(seconds, 0))
		}
	}

	for _, t := range times {
		if t.After(newest) {
			newest = t
		}
	}

	return newest
}

// marking puts marks on the records that are made through it. Options of Helm's actions could not:
// they do not know the number of the revision, and there are none for rollbacks.
type marking struct {
	driver.Driver

	// inputs identifies the inputs.
	inputs string
	// made is the revision that was made, 0 when none was.
	made int
	// none is whether the release has no record. newest is the one record of its history that counts. Both were
	// observed under its Lease, and save a request for the history.
	none   bool
	newest string
}

// expect sets what was observed of the history. Helm upgrades from the newest record, and reads the others only to
// remove those that are too many (Helm 3.21, storage.Storage, Last and Create).
func (m *marking) expect(name Name, step Step, have Observation, maxHistory int) {
	last, exists := have.Last()

	switch {
	case !exists:
		m.none = true
	case step == Upgrade && (maxHistory == 0 || len(have.records) < maxHistory):
		m.newest = recordName(name.Name, last.Number)
	}
}

// Query implements driver.Queryor. Helm reads a history twice before it begins, and lists wait, see
// [Cluster.observeHeld]. A record that another client makes meanwhile has the name of the new record, and is not
// overwritten.
func (m *marking) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	_, deployed := labels["status"]

	switch {
	case m.none:
		return nil, driver.ErrReleaseNotFound
	case m.newest == "" || deployed:
		return m.Driver.Query(labels)
	}

	newest, err := m.Get(m.newest)
	if err != nil {
		return nil, err
	}

	return []*helmrelease.Release{newest}, nil
}

// Create implements driver.Creator.
func (m *marking) Create(key string, r *helmrelease.Release) error {
	mark(r, labelInputs, m.inputs)
	mark(r, labelRevision, strconv.Itoa(r.Version))

	m.none, m.newest = false, ""

	err := m.Driver.Create(key, r)
	if err == nil {
		m.made = r.Version
	}

	return err
}

// removing puts a mark on the record of a release that talosop uninstalls.
type removing struct {
	driver.Driver

	// former are the statuses that records had when Helm read them, which it changes then.
	former map[string]helmrelease.Status
	// newest is the record of the uninstalled revision, where that is known and the history is kept. forgets is
	// whether the record is still deleted at the end.
	newest  string
	forgets bool
}

// Query implements driver.Queryor. Helm first reads the whole history, and uses only its newest record unless it
// deletes them all. At the end it reads the other deployed records, to mark them superseded (Helm 3.21,
// action/uninstall.go, Run). Records that are deleted at once do not need that. Lists wait, see
// [Cluster.observeHeld].
func (m *removing) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	_, deployed := labels["status"]

	switch {
	case deployed && m.forgets:
		return nil, nil
	case !deployed && m.newest != "":
		record, err := m.Get(m.newest)
		if err != nil {
			return nil, err
		}

		m.former[m.newest] = record.Info.Status

		return []*helmrelease.Release{record}, nil
	}

	records, err := m.Driver.Query(labels)
	for _, r := range records {
		m.former[recordName(r.Name, r.Version)] = r.Info.Status
	}

	return records, err
}

// Update implements driver.Updator.
func (m *removing) Update(key string, r *helmrelease.Release) error {
	if r.Info.Status == helmrelease.StatusUninstalling {
		if former, known := m.former[key]; known && former != helmrelease.StatusUninstalling {
			mark(r, labelFormer, formerLabel(r.Version, former))
		}

		mark(r, labelRemoving, strconv.Itoa(r.Version))
	}

	return m.Driver.Update(key, r)
}

func formerLabel(revision int, status helmrelease.Status) string {
	return fmt.Sprintf("%d.%s", revision, status)
}

// formerOf returns what the labels record about a revision.
func formerOf(labels map[string]string, revision int) string {
	former, ours := strings.CutPrefix(labels[labelFormer], formerLabel(revision, ""))
	if !ours {
		return ""
	}

	return former
}

// end makes a record failed whose process is gone. If that was removing it, it is not any more.
func end(r *helmrelease.Release) {
	was := r.Info.Status
	r.SetStatus(helmrelease.StatusFailed, "Interrupted in status "+was.String())

	if was != helmrelease.StatusUninstalling {
		return
	}

	r.Info.Deleted = helmtime.Time{}

	if formerOf(r.Labels, r.Version) == "" {
		// A removal by another client. A removed revision was usually deployed.
		mark(r, labelFormer, formerLabel(r.Version, helmrelease.StatusDeployed))
	}
}

func mark(r *helmrelease.Release, label, value string) {
	// Records share their labels with their originals.
	r.Labels = maps.Clone(r.Labels)
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}

	r.Labels[label] = value
}

func numberOf(name Name, secret map[string]any) int {
	object := &unstructured.Unstructured{Object: secret}

	return revisionNumber(name, object.GetName(), object.GetLabels())
}
