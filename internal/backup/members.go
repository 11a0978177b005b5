package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// membersBucket has the members of the etcd that the snapshot was taken of (etcd 3.6, server/storage/schema). A restore
// drops them.
var membersBucket = []byte("members")

// Members are the hosts at which the members announced themselves when the snapshot was taken, in order; none where the
// snapshot does not say. The pages of the snapshot were verified when it was opened.
func (s *Snapshot) Members() (hosts []string, err error) {
	db, err := bbolt.Open(s.file.Name(), 0o400, &bbolt.Options{ReadOnly: true,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return again(s.file.File) }})
	if err != nil {
		return nil, fmt.Errorf("read the etcd members of the snapshot: %w", err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	err = db.View(func(tx *bbolt.Tx) error {
		members := tx.Bucket(membersBucket)
		if members == nil {
			return nil
		}

		return members.ForEach(func(_, value []byte) error {
			var member struct {
				PeerURLs []string `json:"peerURLs"`
			}

			if err := json.Unmarshal(value, &member); err != nil {
				return damaged("decode an etcd member: %v", err)
			}

			for _, peer := range member.PeerURLs {
				if parsed, err := url.Parse(peer); err == nil && parsed.Hostname() != "" {
					hosts = append(hosts, parsed.Hostname())
				}
			}

			return nil
		})
	})

	slices.Sort(hosts)

	return slices.Compact(hosts), err
}
