// Package charts finds charts and fetches them: from repositories over HTTPS, from OCI registries
// and from paths of this computer.
package charts

// Source is where a chart comes from.
type Source struct {
	// Chart is its name in the repository; without one an oci:// reference, the URL of a package,
	// or the path of a folder or a package.
	Chart string
	// Repository is the URL of a repository, https:// or oci://.
	Repository string
	// Version is exact or a range (SemVer); empty is the latest that is stable, with Devel the latest.
	Version string
	Devel   bool
	// Username and Password of the repository, sent to another host only with PassCredentials.
	Username, Password string
	PassCredentials    bool
	// CA that the server's certificate is of, beside those of the system; ClientCertificate and
	// ClientKey for servers that ask for them. PEM.
	CA, ClientCertificate, ClientKey string
	// InsecureSkipTLSVerify believes any certificate; PlainHTTP uses none (OCI).
	InsecureSkipTLSVerify, PlainHTTP bool
	// UpdateDependencies fetches the dependencies of a chart in a folder, in a copy of it.
	UpdateDependencies bool
	// Verify checks the provenance file of a package against the public keys in the file Keyring.
	Verify  bool
	Keyring string
}

// Pin is what a source stands for at a time.
type Pin struct {
	Name, Version string
	// Digest of the package, such as sha256:0f…; empty when the repository does not say and the
	// package was not fetched. Of a folder it is that of its files.
	Digest string
}
