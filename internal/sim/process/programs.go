package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FindProgram is the path of the first of the programs that a folder has.
func FindProgram(folder string, names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join(folder, name)

		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() {
			return path, nil
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
	}

	return "", fmt.Errorf("folder %s has no %s", folder, names[0])
}

// WriteFile replaces a file at once, as a program may be watching it.
func WriteFile(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)

	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}

	return nil
}
