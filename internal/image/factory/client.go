// Package factory is a client of an Image Factory. It reads versions, extensions and schematics, and uploads
// schematics. The calls are those of docs/api.md of siderolabs/image-factory (v1.5.0), without the authentication
// that Enterprise factories require.
package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// ErrNotFound means that the factory does not have the requested object.
var ErrNotFound = errors.New("not found in the Image Factory")

// longestAnswer is more than any answer has: the list of extensions is some 30 KiB.
const longestAnswer = 4 << 20

// longestReason is how much of the text of an error is shown.
const longestReason = 300

// Client asks one factory.
type Client struct {
	// Base is the URL of the factory.
	Base string
	HTTP *http.Client
}

// Extension is an official system extension at a Talos version.
type Extension struct {
	// Name is what schematics call it, such as "siderolabs/gvisor".
	Name string `json:"name"`
	// Ref and Digest are its image.
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
}

// Image is the image of an extension by its digest.
func (e Extension) Image() string {
	if e.Digest == "" {
		return e.Ref
	}

	return e.Ref + "@" + e.Digest
}

// Upload gives a schematic to the factory, which answers its id. The same content again is the same schematic.
func (c Client) Upload(ctx context.Context, content string) (id string, err error) {
	var answer struct {
		ID string `json:"id"`
	}

	body, err := c.do(ctx, http.MethodPost, content, "schematics")
	if err != nil {
		return "", fmt.Errorf("upload schematic: %w", err)
	}

	if err := json.Unmarshal(body, &answer); err != nil || answer.ID == "" {
		return "", errors.New("upload schematic: the response has no ID; check that the server is an Image Factory")
	}

	return answer.ID, nil
}

// Schematic is the content of a schematic, ErrNotFound when the factory was never given it.
func (c Client) Schematic(ctx context.Context, id string) (content string, err error) {
	body, err := c.do(ctx, http.MethodGet, "", "schematics", id)
	if err != nil {
		return "", fmt.Errorf("read schematic %s: %w", id, err)
	}

	return string(body), nil
}

// Versions are the Talos versions that the factory makes images of.
func (c Client) Versions(ctx context.Context) ([]string, error) {
	var versions []string

	body, err := c.do(ctx, http.MethodGet, "", "versions")
	if err != nil {
		return nil, fmt.Errorf("list Talos versions: %w", err)
	}

	if json.Unmarshal(body, &versions) != nil {
		return nil, errors.New("list Talos versions: the response is not a list; check that the server is an Image Factory")
	}

	return versions, nil
}

// Extensions are the official extensions that there are for a Talos version.
func (c Client) Extensions(ctx context.Context, version string) ([]Extension, error) {
	var extensions []Extension

	body, err := c.do(ctx, http.MethodGet, "", "version", version, "extensions", "official")
	if err != nil {
		return nil, fmt.Errorf("list extensions of Talos %s: %w", version, err)
	}

	if json.Unmarshal(body, &extensions) != nil {
		return nil, fmt.Errorf("list extensions of Talos %s: the response is not a list; check that the server is an "+
			"Image Factory", version)
	}

	return extensions, nil
}

// Cmdline is the kernel command line of an image: file is such as cmdline-metal-amd64.
func (c Client) Cmdline(ctx context.Context, schematic, version, file string) (string, error) {
	body, err := c.do(ctx, http.MethodGet, "", "image", schematic, version, file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}

	return strings.TrimSpace(string(body)), nil
}

// do asks once; the body of an answer other than success is the reason.
func (c Client) do(ctx context.Context, method, content string, path ...string) ([]byte, error) {
	base, err := url.Parse(c.Base)
	if err != nil {
		return nil, fmt.Errorf("parse factory URL: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, method, base.JoinPath(path...).String(), strings.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}

	if content != "" {
		request.Header.Set("Content-Type", "application/yaml")
	}

	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}

	body, err := io.ReadAll(expansion.NewBudget(longestAnswer).Reader(response.Body))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}

	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, ErrNotFound
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s: %s", response.Status, reasonIn(body))
	}

	return body, nil
}

// reasonIn is the text of an error on one line.
func reasonIn(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if runes := []rune(text); len(runes) > longestReason {
		text = string(runes[:longestReason]) + "…"
	}

	return text
}
