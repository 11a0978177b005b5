package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

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
