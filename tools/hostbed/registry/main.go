// Command registry makes images of folders and serves them to the test host and to the nodes in it.
//
//	registry image LAYOUT NAME:TAG FOLDER [ENTRYPOINT]    adds an image of one layer to an OCI image layout
//	registry serve LAYOUT ADDRESS                         serves the images of the layout without TLS
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const refName = "org.opencontainers.image.ref.name"

func main() {
	var err error

	switch args := os.Args[1:]; {
	case len(args) >= 4 && args[0] == "image":
		err = image(args[1], args[2], args[3], args[4:])
	case len(args) == 3 && args[0] == "serve":
		err = serve(args[1], args[2])
	default:
		err = errors.New("usage: registry image LAYOUT NAME:TAG FOLDER [ENTRYPOINT] | registry serve LAYOUT ADDRESS")
	}

	if err != nil {
		fmt.Fprintf(os.Stderr, "registry: %v\n", err)
		os.Exit(1)
	}
}

// image adds an image, in the place of one of the same name.
func image(folder, ref, root string, entrypoint []string) (err error) {
	path, err := layout.FromPath(folder)
	if err != nil {
		if path, err = layout.Write(folder, empty.Index); err != nil {
			return err
		}
	}

	packed, err := os.CreateTemp(folder, "layer-*.tar")
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, os.Remove(packed.Name())) }()

	if err := errors.Join(pack(packed, root), packed.Close()); err != nil {
		return err
	}

	layer, err := tarball.LayerFromFile(packed.Name(), tarball.WithCompressionLevel(gzip.BestSpeed),
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}

	img, err := mutate.AppendLayers(
		mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), layer)
	if err != nil {
		return err
	}

	config, err := img.ConfigFile()
	if err != nil {
		return err
	}

	config.OS, config.Architecture, config.Config.Entrypoint = "linux", "amd64", entrypoint

	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}

	return path.ReplaceImage(img, match.Name(ref), layout.WithAnnotations(map[string]string{refName: ref}))
}

// pack writes a folder as a tar file in which everything belongs to root.
func pack(out io.Writer, root string) error {
	w := tar.NewWriter(out)

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}

		info, err := entry.Info()
		if err != nil {
			return err
		}

		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		}

		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}

		if header.Name, err = filepath.Rel(root, path); err != nil {
			return err
		}

		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""

		if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}

		in, err := os.Open(path)
		if err != nil {
			return err
		}

		_, err = io.Copy(w, in)

		return errors.Join(err, in.Close())
	})

	return errors.Join(err, w.Close())
}

// serve serves the blobs from the layout; the manifests are pushed to it, because a registry keeps them in memory.
func serve(folder, address string) error {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}

	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}

	server := &http.Server{
		Handler: registry.New(
			registry.WithBlobHandler(registry.NewDiskBlobHandler(filepath.Join(folder, "blobs")))),
		ReadHeaderTimeout: time.Minute,
	}

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()

	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}

	for _, d := range manifest.Manifests {
		if err := push(index, d, address); err != nil {
			return err
		}
	}

	fmt.Printf("serving %d images at %s\n", len(manifest.Manifests), address)

	return <-ended
}

func push(index v1.ImageIndex, d v1.Descriptor, address string) error {
	img, err := index.Image(d.Digest)
	if err != nil {
		return err
	}

	ref, err := name.ParseReference(address+"/"+d.Annotations[refName], name.Insecure)
	if err != nil {
		return err
	}

	return remote.Write(ref, img)
}
