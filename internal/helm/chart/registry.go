package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/registry/remote"
)

// artifactKey is a chart in a registry, as one access sees it.
type artifactKey struct {
	access
	chart, repository, version string
	devel                      bool
}

// artifact is a chart in a registry that was chosen.
type artifact struct {
	pin Pin
	// repository is its reference without scheme and tag.
	repository string
	// content and provenance are layers; there may be no provenance.
	content, provenance *ocispec.Descriptor
}

// reference is an oci:// reference, taken apart.
type reference struct{ repository, tag, digest string }

// registryReader reads one repository of a registry, for one operation.
type registryReader struct {
	from   Source
	ref    reference
	remote *remote.Repository
	close  func()
}

// reference of a source: the repository with the chart, or the chart alone.
func (from Source) reference() reference {
	text := from.Chart
	if from.Repository != "" {
		text = strings.TrimSuffix(from.Repository, "/") + "/" + from.Chart
	}
	text, digest, _ := strings.Cut(strings.TrimPrefix(text, ociScheme), "@")
	ref := reference{repository: text, digest: digest}
	if colon := strings.LastIndex(text, ":"); colon > strings.LastIndex(text, "/") {
		ref.repository, ref.tag = text[:colon], text[colon+1:]
	}
	return ref
}

// Tags cannot hold a plus sign, so helm writes an underscore (registry/reference.go, newReference).
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }
func versionOf(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// artifact chooses a version and reads its manifest, once a minute for all who ask.
func (s *Store) artifact(ctx context.Context, from Source) (*artifact, error) {
	key := artifactKey{
		access: from.access(), chart: from.Chart, repository: from.Repository, version: from.Version, devel: from.Devel,
	}
	found, _, err := s.artifacts.get(ctx, key, fresh, func(ctx context.Context) (*artifact, int64, error) {
		var found *artifact
		err := s.retry(ctx, func() error {
			r, err := s.openRegistry(from)
			if err != nil {
				return err
			}
			defer r.close()
			found, err = r.choose(ctx)
			return err
		})
		return found, 1, err
	})
	return found, err
}

// choose finds the version that helm would (registry/client.go, ValidateReference). Where helm accepts only a tag,
// such as "1.2", choose also accepts a version in that range.
func (r *registryReader) choose(ctx context.Context) (*artifact, error) {
	want := r.from.constraint()
	if r.ref.tag != "" {
		if r.from.Version != "" && tagOf(r.from.Version) != tagOf(r.ref.tag) {
			text := fmt.Sprintf("the reference %s has version %s, not %s", r.displayURL(), versionOf(r.ref.tag),
				r.from.Version)
			return nil, newError(text, nil, ErrNoVersion)
		}
		want = versionOf(r.ref.tag)
	}
	if r.ref.digest != "" {
		return r.byDigest(ctx, want)
	}
	if _, err := semver.NewVersion(want); err == nil || r.ref.tag != "" {
		found, err := r.read(ctx, tagOf(want))
		if !errors.Is(err, errGone) {
			return found, err
		}
	}
	tags, err := r.tags(ctx)
	if err != nil {
		return nil, err
	}
	tag, err := registry.GetTagMatchingVersionOrConstraint(tags, want)
	if err != nil {
		from := r.from
		if r.ref.tag != "" {
			from.Version = want
		}
		return nil, noVersion(from, r.name(), r.host(), tags)
	}
	found, err := r.read(ctx, tagOf(tag))
	if errors.Is(err, errGone) {
		return nil, newError("the registry lists the tag "+tag+" of "+r.displayURL()+", but does not serve it", err,
			ErrNoVersion)
	}
	return found, err
}

func (r *registryReader) byDigest(ctx context.Context, want string) (*artifact, error) {
	if _, err := digest.Parse(r.ref.digest); err != nil {
		return nil, newError("the reference "+r.displayURL()+" has the invalid digest "+r.ref.digest, err, ErrNoVersion)
	}
	found, err := r.read(ctx, r.ref.digest)
	if errors.Is(err, errGone) {
		return nil, newError(fmt.Sprintf("%s has no content with digest %s", r.displayURL(), r.ref.digest), err,
			ErrNoVersion)
	}
	if err != nil {
		return nil, err
	}
	if !satisfies(found.pin.Version, want) {
		text := fmt.Sprintf("%s with digest %s is version %s, not %s", r.displayURL(), r.ref.digest,
			found.pin.Version, want)
		return nil, newError(text, nil, ErrNoVersion)
	}
	return found, nil
}

// tags lists the versions, newest first, as helm does (registry/client.go, Tags).
func (r *registryReader) tags(ctx context.Context) ([]string, error) {
	var versions []*semver.Version
	pages := 0
	err := r.remote.Tags(ctx, "", func(tags []string) error {
		if pages++; pages > mostTagPages {
			return newError(fmt.Sprintf("%s lists its tags on more than %d pages", r.displayURL(), mostTagPages), nil,
				ErrTooLarge, ErrDamaged)
		}
		for _, tag := range tags {
			if version, err := semver.StrictNewVersion(versionOf(tag)); err == nil {
				versions = append(versions, version)
			}
		}
		return nil
	})
	if err = r.classify(ctx, err); errors.Is(err, errGone) {
		return nil, newError("no such chart: "+r.displayURL(), err, ErrNoChart)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	names := make([]string, 0, len(versions))
	for _, v := range versions {
		names = append(names, v.String())
	}
	return names, nil
}

// read reads a manifest by tag or digest; errGone when there is none.
func (r *registryReader) read(ctx context.Context, reference string) (*artifact, error) {
	body, kind, err := r.manifest(ctx, reference)
	if err != nil {
		return nil, err
	}
	if kind == ocispec.MediaTypeImageIndex || kind == dockerList {
		return r.readList(ctx, body)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(body, &manifest); err != nil {
		return nil, newError(r.displayURL()+" has an invalid manifest", err, ErrDamaged)
	}
	if manifest.Config.MediaType != registry.ConfigMediaType {
		return nil, newError(fmt.Sprintf("%s is not a chart but %s", r.displayURL(), artifactKind(manifest)), nil, ErrDamaged)
	}
	found := &artifact{repository: r.ref.repository}
	for _, layer := range manifest.Layers {
		switch layer.MediaType {
		case registry.ChartLayerMediaType, registry.LegacyChartLayerMediaType:
			found.content = &layer
		case registry.ProvLayerMediaType:
			found.provenance = &layer
		}
	}
	if found.content == nil {
		return nil, newError(r.displayURL()+" is not a chart: its manifest has no layer of type "+
			registry.ChartLayerMediaType, nil, ErrDamaged)
	}
	found.pin, err = r.pin(ctx, manifest)
	found.pin.Digest = normalDigest(found.content.Digest.String())
	return found, err
}

const dockerList = "application/vnd.docker.distribution.manifest.list.v2+json"

// readList takes the one chart in a list of manifests, as helm does (registry/client.go, Pull).
func (r *registryReader) readList(ctx context.Context, body []byte) (*artifact, error) {
	const most = 8
	var list ocispec.Index
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, newError(r.displayURL()+" has an invalid index", err, ErrDamaged)
	}
	for _, one := range list.Manifests[:min(len(list.Manifests), most)] {
		if one.MediaType != ocispec.MediaTypeImageManifest || one.Platform != nil {
			continue
		}
		found, err := r.read(ctx, one.Digest.String())
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, errGone) {
			return found, err
		}
	}
	return nil, newError(r.displayURL()+" is not a chart but a list of images for several platforms", nil, ErrDamaged)
}

// pin reads name and version where helm writes them: in the annotations (registry/util.go,
// generateChartOCIAnnotations), and in the config, which is the Chart.yaml.
func (r *registryReader) pin(ctx context.Context, manifest ocispec.Manifest) (Pin, error) {
	pin := Pin{
		Name:    manifest.Annotations[ocispec.AnnotationTitle],
		Version: manifest.Annotations[ocispec.AnnotationVersion],
	}
	if pin.Name != "" && pin.Version != "" {
		return pin, nil
	}
	body, err := r.blob(ctx, manifest.Config, largestManifest)
	if err != nil {
		return Pin{}, err
	}
	var meta helmchart.Metadata
	if err := json.Unmarshal(body, &meta); err != nil {
		return Pin{}, newError(r.displayURL()+" has an invalid Chart.yaml", err, ErrDamaged)
	}
	return Pin{Name: meta.Name, Version: meta.Version}, nil
}

// artifactKind describes an artifact that is no chart.
func artifactKind(m ocispec.Manifest) string {
	switch {
	case m.ArtifactType != "":
		return "an artifact of type " + m.ArtifactType
	case m.Config.MediaType == ocispec.MediaTypeImageConfig,
		m.Config.MediaType == "application/vnd.docker.container.image.v1+json":
		return "a container image (" + m.Config.MediaType + ")"
	case m.Config.MediaType == "":
		return "a manifest without a config"
	}
	return "an artifact with a config of type " + m.Config.MediaType
}

const largestManifest int64 = 4 << 20

func (r *registryReader) manifest(ctx context.Context, reference string) (body []byte, mediaType string, err error) {
	found, content, err := r.remote.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return nil, "", r.classify(ctx, err)
	}
	defer func() { _ = content.Close() }()
	body, err = readAll(ctx, "the manifest of "+r.displayURL(), content, largestManifest)
	if err == nil && digest.FromBytes(body) != found.Digest && found.Digest.Algorithm() == digest.SHA256 {
		text := fmt.Sprintf("the manifest of %s has digest %s, expected %s", r.displayURL(),
			digest.FromBytes(body), found.Digest)
		err = newError(text, nil, ErrDamaged)
	}
	return body, found.MediaType, err
}

// blob reads a layer and makes sure that it is the expected one.
func (r *registryReader) blob(ctx context.Context, layer ocispec.Descriptor, limit int64) ([]byte, error) {
	at := "the layer " + layer.MediaType + " of " + r.displayURL()
	if layer.Size > limit {
		return nil, tooLarge(at, limit)
	}
	if err := layer.Digest.Validate(); err != nil {
		return nil, newError(at+" has an invalid digest", err, ErrDamaged)
	}
	content, err := r.remote.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, r.classify(ctx, err)
	}
	defer func() { _ = content.Close() }()
	body, err := readAll(ctx, at, content, limit)
	if err != nil {
		return nil, err
	}
	if have := layer.Digest.Algorithm().FromBytes(body); have != layer.Digest {
		return nil, newError(fmt.Sprintf("%s has digest %s, expected %s", at, have, layer.Digest), nil,
			ErrDamaged)
	}
	return body, nil
}

// layer reads a layer of an artifact once for all who ask.
func (s *Store) layer(ctx context.Context, from Source, found *artifact, layer ocispec.Descriptor) ([]byte, error) {
	key := fileKey{access: from.access(), at: ociScheme + found.repository, digest: layer.Digest.String()}
	body, _, err := s.files.get(ctx, key, 0, func(ctx context.Context) ([]byte, int64, error) {
		var body []byte
		err := s.retry(ctx, func() error {
			r, err := s.openRegistry(from)
			if err != nil {
				return err
			}
			defer r.close()
			body, err = r.blob(ctx, layer, s.packageLimit)
			return err
		})
		return body, int64(len(body)), err
	})
	if errors.Is(err, errGone) {
		return nil, newError("the registry has a manifest of "+ociScheme+found.repository+", but not its content", err,
			ErrDamaged)
	}
	return body, err
}

func (s *Store) fromRegistry(ctx context.Context, from Source) (download, error) {
	found, err := s.artifact(ctx, from)
	if err != nil {
		return download{}, err
	}
	archive, err := s.layer(ctx, from, found, *found.content)
	if err != nil {
		return download{}, err
	}
	return download{
		from: ociScheme + found.repository + ":" + tagOf(found.pin.Version), archive: archive, pin: found.pin,
		name: found.pin.Name + "-" + found.pin.Version + ".tgz",
		provenance: func(ctx context.Context) ([]byte, error) {
			if found.provenance == nil {
				return nil, newError("its manifest has no layer of type "+registry.ProvLayerMediaType, nil, errGone)
			}
			return s.layer(ctx, from, found, *found.provenance)
		},
	}, nil
}

// fromRegistryOf brings a chart that the index of a repository places in a registry, as Bitnami's does.
func (s *Store) fromRegistryOf(ctx context.Context, from Source, chosen entry) (download, error) {
	source := from.elsewhere()
	source.Chart, source.Repository, source.Version = chosen.at.String(), "", ""
	got, err := s.fromRegistry(ctx, source)
	if err != nil {
		return download{}, from.notPassedOn(err)
	}
	if want := chosen.pin.Digest; want != "" && want != digestOf(got.archive) {
		text := fmt.Sprintf("%s has digest %s, but the index of %s expects %s", got.from, digestOf(got.archive),
			displayURL(chosen.origin), want)
		return download{}, newError(text, nil, ErrDamaged, errMismatch)
	}
	got.pin = chosen.pin
	return got, nil
}
