package backup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// The steps of the guide, for a snapshot that lies in the folder as the extension says.
var steps = map[string][]string{
	".db":     nil,
	".db.zst": {"zstd --decompress snapshot.db.zst"},
	".db.age": {"age --decrypt --identity key.txt --output snapshot.db snapshot.db.age"},
	".db.zst.age": {
		"age --decrypt --identity key.txt --output snapshot.db.zst snapshot.db.zst.age",
		"zstd --decompress snapshot.db.zst",
	},
}

const (
	statusStep  = "etcdutl snapshot status snapshot.db --write-out json"
	secretsStep = "age --decrypt --identity key.txt --output secrets.yaml snapshot.secrets.yaml.age"
)

// folder is where a user follows the guide.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) write(t *testing.T, name string, data []byte) {
	t.Helper()

	if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is a step, run with the programs of the tests.
func (f folder) command(t *testing.T, step string) *exec.Cmd {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
	cmd.Dir = string(f)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("TALOSOP_TEST_ASSETS")+string(os.PathListSeparator)+os.Getenv("PATH"))

	return cmd
}

func (f folder) run(t *testing.T, step string) []byte {
	t.Helper()

	var trouble bytes.Buffer

	cmd := f.command(t, step)
	cmd.Stderr = &trouble

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", step, err, trouble.String())
	}

	return out
}

// zstdCommand skips the test where zstd is not installed: it is in C, and tools/testbed has Go
// alone. CI installs it.
func zstdCommand(t *testing.T) {
	t.Helper()

	if _, err := exec.LookPath("zstd"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("zstd is missing: install the package zstd")
		}

		t.Skip("zstd is missing: install the package zstd")
	}
}

// What was stored of a real member opens with the command lines of age and zstd, and
// etcdutl agrees with what was recorded.
func TestGuide_stepsOpenABackup(t *testing.T) {
	t.Parallel()
	clitest.Asset(t, "age")
	clitest.Asset(t, "etcdutl")
	zstdCommand(t)

	m, revision := filled(t)

	var snapshot bytes.Buffer
	if err := m.snapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}

	for extension, sealing := range sealings(t) {
		t.Run(extension, func(t *testing.T) {
			a, s := archive(t)
			f := folder(t.TempDir())
			request := backup.Request{At: taken, Sealing: sealing.Sealing, Source: inPieces(snapshot.Bytes(), 32<<10)}

			if sealing.Encryption() != "" {
				request.Secrets = []byte(bundle)
				f.write(t, "key.txt", []byte(sealing.keys.Identities[0]+"\n"))
			}

			record, err := a.Take(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}

			f.write(t, "snapshot"+extension, read(t, s, record.Key, store.Range{}))

			for _, step := range steps[extension] {
				f.run(t, step)
			}

			if opened, err := os.ReadFile(f.path("snapshot.db")); err != nil || !bytes.Equal(opened, snapshot.Bytes()) {
				t.Errorf("the steps make %d bytes of it (%v), want the %d of the member", len(opened), err, snapshot.Len())
			}

			agrees(t, f.run(t, statusStep), record.Database, revision)

			if request.Secrets != nil {
				f.write(t, "snapshot.secrets.yaml.age", read(t, s, record.Secrets.Key, store.Range{}))
				f.run(t, secretsStep)

				if opened, err := os.ReadFile(f.path("secrets.yaml")); err != nil || string(opened) != bundle {
					t.Errorf("the secrets are %q (%v)", opened, err)
				}
			}
		})
	}
}

// agrees compares a record with the status of etcdutl.
func agrees(t *testing.T, status []byte, database backup.Database, revision int64) {
	t.Helper()

	var want struct {
		Hash      uint32
		Revision  int64
		TotalSize int64
		Version   string
	}

	if err := json.Unmarshal(status, &want); err != nil {
		t.Fatal(err)
	}

	if want.Revision != revision ||
		database != (backup.Database{Revision: want.Revision, Hash: want.Hash, Size: want.TotalSize, Version: want.Version}) {
		t.Errorf("recorded %+v, want revision %d and what etcdutl says: %s", database, revision, status)
	}
}

// A passphrase is asked for on the terminal, which script(1) is here.
func TestGuide_stepsOpenABackupWithAPassphrase(t *testing.T) {
	t.Parallel()
	clitest.Asset(t, "age")

	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script is missing: install the package util-linux")
	}

	a, s := archive(t)
	f := folder(t.TempDir())

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: backup.Sealing{Passphrase: "correct horse"}, Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	f.write(t, "snapshot.db.age", read(t, s, record.Key, store.Range{}))

	cmd := f.command(t, `script --quiet --return --command "age --decrypt --output snapshot.db snapshot.db.age" /dev/null`)

	terminal, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	var output bytes.Buffer

	cmd.Stdout = &output

	err = cmd.Start()
	if err == nil {
		_, err = io.WriteString(terminal, "correct horse\n")
		err = errors.Join(err, cmd.Wait())
	}

	if err != nil {
		t.Fatalf("%v: %s", err, strings.TrimSpace(output.String()))
	}

	if opened, err := os.ReadFile(f.path("snapshot.db")); err != nil || !bytes.Equal(opened, whole(t)) {
		t.Errorf("age makes %d bytes of it (%v)", len(opened), err)
	}
}

// From the stream of a member to an opened snapshot.
func TestSnapshot_ofARealMember(t *testing.T) {
	t.Parallel()

	m, revision := filled(t)
	a := backup.Archive{Store: file.Store{Path: t.TempDir()}, Cluster: "prod", Mark: ours, RecordKeys: recordKeys,
		Scratch: t.TempDir()}

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: backup.Sealing{Compress: true}, Source: m.snapshot})
	if err != nil {
		t.Fatal(err)
	}

	if record.Database.Revision != revision || record.Database.Hash == 0 {
		t.Errorf("recorded %+v, want revision %d", record.Database, revision)
	}

	snapshot, err := a.Fetch(t.Context(), record.Key, backup.Keys{})
	if err != nil || snapshot.Database != record.Database {
		t.Fatalf("fetched %+v (%v), want %+v", snapshot, err, record.Database)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
