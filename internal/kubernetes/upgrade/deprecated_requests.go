package upgrade

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// deprecatedRequests is the metric of an API server for the deprecated APIs that clients requested since it
// started. Its labels are group, version, resource, subresource and removed_release (Kubernetes 1.36,
// k8s.io/apiserver/pkg/endpoints/metrics deprecatedRequestGauge; it is stable).
const deprecatedRequests = "apiserver_requested_deprecated_apis"

// maxMetric is more than a line of metrics has.
const maxMetric = 1 << 20

// removedRequests asks one API server which APIs were requested that steps remove.
func (u *Upgrade) removedRequests(ctx context.Context, steps []step, s *api.Server) (Obstacles, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.api.Options.Call, fmt.Errorf("no response within %s",
		u.api.Options.Call))
	defer cancel()

	var found Obstacles

	server, err := u.api.At(s)
	if err != nil {
		return found, err
	}

	metrics, err := server.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return found, fmt.Errorf("read deprecated requests of the API server at %s: %w", s.URL, api.WithoutURL(err))
	}

	requests, err := readRequests(metrics)
	if err := errors.Join(err, metrics.Close()); err != nil {
		return found, fmt.Errorf("read deprecated requests of the API server at %s: %w", s.URL, err)
	}

	for _, r := range requests {
		// An API may be deprecated long before the version of its removal is known.
		removed, err := minorOf(r.RemovedIn)
		if err != nil {
			continue
		}

		for _, s := range steps {
			if s.from < removed && removed <= s.to {
				found.Requests = append(found.Requests, r)
			}
		}
	}

	return found, nil
}

// label is one of a metric. Those that are read here have no quotes in their values.
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// readRequests reads metrics in the text format of Prometheus.
func readRequests(metrics io.Reader) ([]RemovedRequest, error) {
	var requests []RemovedRequest

	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, maxMetric)

	for lines.Scan() {
		labels, is := strings.CutPrefix(lines.Text(), deprecatedRequests+"{")
		if !is {
			continue
		}

		values := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(labels, -1) {
			values[l[1]] = l[2]
		}

		requests = append(requests, RemovedRequest{
			Group: values["group"], Version: values["version"], Resource: values["resource"], Subresource: values["subresource"],
			RemovedIn: values["removed_release"],
		})
	}

	return requests, lines.Err()
}

// minor is a minor version of Kubernetes 1.
type minor uint64

func (m minor) String() string { return fmt.Sprintf("1.%d", uint64(m)) }

func minorOf(version string) (minor, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil || v.Major != 1 {
		return 0, errors.Join(fmt.Errorf("%q is not a valid Kubernetes version", version), err)
	}

	return minor(v.Minor), nil
}
