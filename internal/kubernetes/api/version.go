package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Ready asks the API server whether it is ready to serve, as a load balancer would.
func (c *Client) Ready(ctx context.Context) error {
	if err := c.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("check whether the Kubernetes API is ready: %w", WithoutURL(err))
	}

	return nil
}

// Version returns the version of the API server, such as v1.35.2.
func (c *Client) Version(ctx context.Context) (string, error) {
	gitVersion, err := versionFrom(ctx, c.CoreV1().RESTClient())
	if err != nil {
		return "", fmt.Errorf("read the version of the Kubernetes API: %w", WithoutURL(err))
	}

	return gitVersion, nil
}

// VersionAt asks one API server for its version, by the address of its machine.
func (c *Client) VersionAt(ctx context.Context, ip string) (string, error) {
	s, _ := c.serverOf(ip)
	if s == nil {
		return "", fmt.Errorf("read the version of the API server at %s: it is reachable only through %s",
			ip, c.given[0].URL)
	}

	// The next request may be for another process, and the server for this one alone.
	defer s.http.CloseIdleConnections()

	api, err := c.At(s)
	if err != nil {
		return "", err
	}

	gitVersion, err := versionFrom(ctx, api)
	if err != nil {
		return "", fmt.Errorf("read the version of the API server at %s: %w", s.URL, WithoutURL(err))
	}

	return gitVersion, nil
}

// Unready are the checks that keep one API server from being ready, such as informer-sync, by the address of its
// machine. There are none for a server that is ready, or that is not known by that address.
func (c *Client) Unready(ctx context.Context, ip string) ([]string, error) {
	s, _ := c.serverOf(ip)
	if s == nil {
		return nil, nil
	}

	api, err := c.pinnedTo(s, true)
	if err != nil {
		return nil, err
	}

	raw, err := api.Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
	if err == nil {
		return nil, nil
	}

	var failed []string

	// A server that is not ready answers with a line for each check (k8s.io/apiserver 0.36, server/healthz).
	for line := range strings.Lines(string(raw)) {
		if check, is := strings.CutPrefix(line, "[-]"); is {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}

	if len(failed) > 0 {
		return failed, nil
	}

	return nil, fmt.Errorf("check whether the API server at %s is ready: %w", s.URL, WithoutURL(err))
}

func versionFrom(ctx context.Context, api rest.Interface) (string, error) {
	raw, err := api.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}

	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}

	return info.GitVersion, nil
}

// OneLine is an error on one line, without the request that net/http puts in front.
func OneLine(err error) string { return strings.ReplaceAll(WithoutURL(err).Error(), "\n", "; ") }
