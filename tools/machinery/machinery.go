// Package machinery runs programs with the machinery library of each supported release of Talos, which says what
// machines of that release take.
package machinery

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Releases are the machinery releases that are asked, by the minor version of Talos 1. The older ones bring their own
// dependencies, the pinned one has those of the provider.
var Releases = map[int]string{10: "v1.10.6", 11: "v1.11.6", 12: "v1.12.4", 13: "v1.13.9", 14: pinned}

// pinned is the release in go.mod; a test compares it.
const pinned = "v1.14.1"

const module = "github.com/siderolabs/talos/pkg/machinery"

// Write is the main function of a program that writes what it found out of the releases to the file of its flag -o.
func Write(find func(context.Context) ([]byte, error)) {
	log.SetFlags(0)

	out := flag.String("o", "", "file that is written")
	flag.Parse()

	found, err := find(context.Background())
	if err == nil {
		err = os.WriteFile(*out, found, 0o600)
	}

	if err != nil {
		log.Fatal(err)
	}
}

// Run runs a program in a copy of a release, from the folder of the provider. It adds the files of the program to
// the copy by their paths in it, so that the program may use packages that are internal to the library; folder is
// that of the main package.
func Run(
	ctx context.Context, release string, files map[string][]byte, folder string, input io.Reader,
) ([]byte, error) {
	source, err := Downloaded(ctx, module+"@"+release)
	if err != nil {
		return nil, err
	}

	copied, err := os.MkdirTemp("", "machinery-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(copied) //nolint:errcheck // a copy in the folder for temporary files

	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return nil, err
	}

	for path, content := range files {
		path = filepath.Join(copied, path)

		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}

		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}

	if release != pinned {
		return run(ctx, input, "run", "-C", copied, "./"+folder)
	}

	mod := filepath.Join(copied, "provider.mod")
	if err := replaced(ctx, mod, copied); err != nil {
		return nil, err
	}

	return run(ctx, input, "run", "-mod=mod", "-modfile="+mod, module+"/"+folder)
}

// replaced writes a go.mod of the provider that takes machinery from a folder.
func replaced(ctx context.Context, mod, folder string) error {
	for from, to := range map[string]string{"go.mod": mod, "go.sum": strings.TrimSuffix(mod, ".mod") + ".sum"} {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}

		if err := os.WriteFile(to, content, 0o600); err != nil {
			return err
		}
	}

	_, err := run(ctx, nil, "mod", "edit", "-replace="+module+"="+folder, mod)

	return err
}

// Downloaded is the folder of a release of a module, such as k8s.io/api@v0.36.0, in the module cache.
func Downloaded(ctx context.Context, release string) (string, error) {
	answer, err := run(ctx, nil, "mod", "download", "-json", release)
	if err != nil {
		return "", err
	}

	var found struct{ Dir string }
	if err := json.Unmarshal(answer, &found); err != nil {
		return "", fmt.Errorf("read what go mod download printed: %w", err)
	}

	return found.Dir, nil
}

func run(ctx context.Context, input io.Reader, arguments ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer

	command := exec.CommandContext(ctx, "go", arguments...)
	command.Stdin, command.Stdout, command.Stderr = input, &stdout, io.MultiWriter(&stderr, os.Stderr)

	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", arguments[0], err, stderr.String())
	}

	return stdout.Bytes(), nil
}
