package backup

import (
	"crypto/rand"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// recordSuffix is what the name of a snapshot's record has more than that of the snapshot.
const recordSuffix = ".json"

// namePrefix is how all names begin that this package makes.
const namePrefix = "etcd-snapshot-"

// stem of a snapshot's name and of what is stored beside it: the time of the start in UTC,
// the mark of the cluster, and some letters that no other run of the same second has.
const stem = `^` + namePrefix + `(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}Z)-([0-9a-f]{8,64})-([a-z0-9]{6})\.`

var (
	stems = regexp.MustCompile(stem)
	// names of snapshots also show how they were sealed.
	names = regexp.MustCompile(stem + `db(\.zst)?(\.age)?$`)
)

// timeFormat has no colon, which file systems and shells do not like; talos-operator writes
// the same.
const timeFormat = "2006-01-02T15-04-05Z"

// Name is the content of a snapshot's key.
type Name struct {
	At   time.Time
	Mark string
	// Compressed and Encrypted are what the extensions say, for people; readers look at how
	// the bytes begin.
	Compressed, Encrypted bool
}

// newKey is a key that no other call returns.
func newKey(folder string, at time.Time, mark string, sealing Sealing) string {
	name := fmt.Sprintf("%s%s-%s-%s.db", namePrefix, at.UTC().Format(timeFormat), mark, strings.ToLower(rand.Text()[:6]))

	if sealing.Compression() != "" {
		name += ".zst"
	}

	if sealing.Encryption() != "" {
		name += ".age"
	}

	return path.Join(folder, name)
}

// ParseKey reads the key of a snapshot; ok is false for what is not named by this package.
func ParseKey(key string) (name Name, ok bool) {
	parts := names.FindStringSubmatch(path.Base(key))
	if parts == nil {
		return Name{}, false
	}

	at, err := time.Parse(timeFormat, parts[1])
	if err != nil {
		return Name{}, false
	}

	return Name{At: at, Mark: parts[2], Compressed: parts[4] != "", Encrypted: parts[5] != ""}, true
}

// markOf is the mark in the key of a snapshot or of an object stored beside one.
func markOf(key string) string {
	parts := stems.FindStringSubmatch(path.Base(key))
	if parts == nil {
		return ""
	}

	return parts[2]
}
