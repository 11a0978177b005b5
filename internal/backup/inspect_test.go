package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Inspect applies to a file all checks of a snapshot on its way into a store and out of one: a database with or
// without its sum at the end.
func Inspect(ctx context.Context, path string) (_ Database, err error) {
	file, err := os.Open(path)
	if err != nil {
		return Database{}, err
	}

	defer func() { err = errors.Join(err, file.Close()) }()

	s, err := newScan("")
	if err != nil {
		return Database{}, err
	}

	defer func() { err = errors.Join(err, s.Close()) }()

	if _, err := io.Copy(s, file); err != nil {
		return Database{}, fmt.Errorf("read the database: %w", err)
	}

	return s.database(ctx)
}
