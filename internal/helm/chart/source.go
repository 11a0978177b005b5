// Package chart finds charts and fetches them: from repositories over HTTPS, from OCI registries,
// from the URL of a package and from paths of this computer.
//
// A chart is what its content is: [Store.Resolve] says the digest that a source stands for,
// mostly without a download, and [Store.Fetch] gives out nothing else than that. Both are asked
// by many addons at once, so what they read is read once and shared. Every request ends with the
// context of those who wait for it. Helm's own settings play no part, except for the files in
// which helm and docker keep the credentials of registries.
package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
)

// Source is the location of a chart.
type Source struct {
	// Chart is its name in the repository; without one an oci:// reference, the URL of a package,
	// or the path of a folder or a package.
	Chart string
	// Repository is the URL of a repository, https:// or oci://, or http:// for one without TLS.
	Repository string
	// Version is exact or a range (SemVer); empty is the latest that is stable, with Devel the latest.
	Version string
	Devel   bool
	// Username and Password of the repository, sent to another host only with PassCredentials.
	Username, Password string
	PassCredentials    bool
	// CA that signed the server's certificate, in addition to those of the system. ClientCertificate and ClientKey
	// are for servers that require them. PEM.
	CA, ClientCertificate, ClientKey string
	// InsecureSkipTLSVerify trusts any certificate; PlainHTTP uses none (OCI).
	InsecureSkipTLSVerify, PlainHTTP bool
	// UpdateDependencies fetches the dependencies that a chart in a folder lacks, and those that it
	// takes from other folders. The folder itself is left as it is.
	UpdateDependencies bool
	// Verify checks the provenance file of a package against the public keys in the file Keyring.
	Verify  bool
	Keyring string
}

// Pin is what a source resolved to at one time.
type Pin struct {
	Name, Version string
	// Digest of the package, such as sha256:0f…; empty when the repository does not say and the
	// package was not fetched. Of a folder it is that of its files.
	Digest string
}

// sourceKind is the kind of a source.
type sourceKind int

const (
	onDisk sourceKind = iota
	inRepository
	inRegistry
	atURL
)

const ociScheme = "oci://"

// InRegistry reports whether a source is an OCI registry.
func (from Source) InRegistry() bool {
	return strings.HasPrefix(from.Repository, ociScheme) ||
		from.Repository == "" && strings.HasPrefix(from.Chart, ociScheme)
}

// kind distinguishes the kinds of sources, and refuses an unknown one.
func (from Source) kind() (sourceKind, error) {
	chart, repository := from.Chart, from.Repository
	if chart == "" {
		return 0, newError("no chart is given", nil, ErrNoChart)
	}
	for _, text := range []string{chart, repository} {
		if err := checkURL(text); err != nil {
			return 0, err
		}
	}
	switch {
	case repository != "" && strings.Contains(chart, "://"):
		return 0, newError("a chart that is a URL needs no repository", nil, ErrNoChart)
	case from.InRegistry():
		return inRegistry, nil
	case isHTTP(repository):
		return inRepository, nil
	case repository != "":
		return 0, newError("the repository must start with https://, http:// or oci://, found "+repository, nil, ErrNoChart)
	case isHTTP(chart):
		return atURL, nil
	case strings.Contains(chart, "://"):
		return 0, newError("the chart must be a name, a path, or start with https://, http:// or oci://, found "+chart, nil,
			ErrNoChart)
	}
	return onDisk, nil
}

func isHTTP(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// checkURL refuses URLs that cannot be read or that hold credentials, without showing those.
func checkURL(text string) error {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		return newError("the URL "+scheme+"://(sensitive)@"+authority[at+1:]+
			" contains credentials, which would appear in logs and state: set username and password instead", nil, ErrNoChart)
	}
	if authority == "" {
		return newError("a URL that starts with "+scheme+":// has no host", nil, ErrNoChart)
	}
	if _, err := url.Parse(text); isHTTP(text) && err != nil {
		// Neither the URL nor the error is shown: what cannot be read may hold credentials.
		return newError("a URL that starts with "+scheme+":// is invalid", nil, ErrNoChart)
	}
	return nil
}

// isFolder reports whether a chart on disk is a folder.
func isFolder(from Source) (bool, error) {
	info, err := os.Stat(from.Chart)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := fmt.Sprintf("no folder or package %s exists here; a chart in a repository needs the URL of the repository",
			from.Chart)
		return false, newError(text, nil, ErrNoChart)
	case err != nil:
		return false, newError("read the chart", err, ErrNoChart)
	}
	return info.IsDir(), nil
}
