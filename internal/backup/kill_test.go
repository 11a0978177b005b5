package backup_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// victim is what a process of this test that will be killed finds in its environment.
const victim = "TALOSOP_TEST_VICTIM"

// large is a snapshot that takes several parts, of which the pages are never looked at.
const large = 40 * mib

// TestMain is the victim where it is asked to be one.
func TestMain(m *testing.M) {
	if os.Getenv(victim) == "" {
		m.Run()
		return
	}

	if err := die(); err != nil {
		panic(err)
	}
}

// die stores half a snapshot, says so and waits for its end.
func die() error {
	a := backup.Archive{Cluster: "prod", Mark: ours, Scratch: os.Getenv("TALOSOP_TEST_SCRATCH")}

	if folder := os.Getenv(victim); folder != "s3" {
		a.Store = file.Store{Path: folder}
	} else {
		s, err := s3.New(context.Background(), s3.Config{
			Bucket: bucket, Region: "us-east-1", Endpoint: os.Getenv("TALOSOP_TEST_ENDPOINT"), PathStyle: true, InsecureSkipTLSVerify: true,
			Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		})
		if err != nil {
			return err
		}

		a.Store = s
	}

	_, err := a.Take(context.Background(), backup.Request{At: taken, Source: func(ctx context.Context, to io.Writer) error {
		if err := inPieces(content(large), mib)(ctx, to); err != nil {
			return err
		}

		if _, err := os.Stdout.WriteString("half\n"); err != nil {
			return err
		}

		<-ctx.Done()

		return ctx.Err()
	}})

	return err
}

// A killed run leaves nothing that is listed, and the next one removes the rest.
func TestAKilledRunLeavesNothingToTheNext(t *testing.T) {
	t.Parallel()

	t.Run("file", func(t *testing.T) {
		t.Parallel()

		s := file.Store{Path: t.TempDir()}
		kill(t, victim+"="+s.Path)
		again(t, s)
	})

	t.Run("s3", func(t *testing.T) {
		t.Parallel()

		b := newBucketServer(t)
		kill(t, victim+"=s3", "TALOSOP_TEST_ENDPOINT="+b.proxy.URL)
		again(t, opened(t, b.config()))
	})
}

// kill ends a run of its own process half way.
func kill(t *testing.T, environment ...string) {
	t.Helper()

	scratch := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(environment, "TALOSOP_TEST_SCRATCH="+scratch)...)

	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}

	if _, err := io.ReadFull(out, make([]byte, len("half\n"))); err != nil {
		t.Error(err)
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}

	_ = cmd.Wait() // says that it was killed

	left(t, scratch, 0) // the database in clear text is gone with the process
}

// again is the run after a killed one.
func again(t *testing.T, s store.Store) {
	t.Helper()

	a := backup.Archive{Store: s, Cluster: "prod", Mark: ours, Scratch: t.TempDir()}

	if entries, err := a.List(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("half a snapshot is listed: %v (%v)", entries, err)
	}

	if swept, err := a.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || swept != 1 {
		t.Errorf("%d rests were swept (%v), want that of the killed run", swept, err)
	}

	if _, err := a.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)}); err != nil {
		t.Error(err)
	}

	untouched(t, s, 2)
}
