package zipws

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
)

// A metadata is what is written down of a session.
type metadata struct {
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Source     string       `json:"source_path"`
	State      string       `json:"state"` // "open" or "syncing"
	Format     pack.Format  `json:"format"`
	Lazy       bool         `json:"lazy,omitempty"`
	Links      bool         `json:"symlinks,omitempty"` // were unpacked
	Created    time.Time    `json:"created_at"`
	Synced     *time.Time   `json:"last_synced_at"`
	Hash       string       `json:"directory_sha256"` // of the archive's list of entries
	Archive    stamp        `json:"archive"`
	Generation int          `json:"generation"`
	Files      int          `json:"file_count"`
	Bytes      int64        `json:"extracted_size_bytes"`
	Limit      int64        `json:"max_extracted_size_bytes,omitempty"` // of the session, where it is not the setting
	Sync       *pendingSync `json:"sync,omitempty"`

	unfinished bool // a killed process has left something
}

// A pendingSync is what a sync that did not end needs to be completed or taken
// back.
type pendingSync struct {
	Temps  []string `json:"temps"`            // beside the archive
	Backup string   `json:"backup,omitempty"` // the first one, beside the archive
	Hash   string   `json:"directory_sha256,omitempty"`
	Next   *totals  `json:"next,omitempty"` // what holds once the archive is replaced
}

// The totals of a workspace change with a sync.
type totals struct {
	Files int   `json:"file_count"`
	Bytes int64 `json:"extracted_size_bytes"`
}

const (
	stateOpen    = "open"
	stateSyncing = "syncing"
)

func loadMetadata(dir *os.Root) (metadata, error) {
	var d metadata
	b, err := dir.ReadFile(metadataName)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%s: %w", metadataName, err)
	}
	return d, nil
}

// leftIn reports whether the workspace dir, as d says it is, has something that
// a killed process has left.
func leftIn(dir *os.Root, d metadata) bool {
	if d.Sync != nil {
		return true
	}
	for _, name := range []string{tempName, part("directory", d.Generation-1), part("directory", d.Generation+1)} {
		if _, err := dir.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// save puts the metadata of s in place.
func (s *session) save() error {
	b, err := json.MarshalIndent(s.metadata, "", "  ")
	if err != nil {
		return err
	}
	s.m.step("write metadata")
	if err := writeDurably(s.root, tempName, b); err != nil {
		return err
	}
	s.m.step("place metadata")
	if err := s.root.Rename(tempName, metadataName); err != nil {
		return err
	}
	return atomicfile.Sync(s.root)
}

// writeDurably writes a file and flushes it to the disk.
func writeDurably(dir *os.Root, name string, b []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keep writes the files of a generation.
func (s *session) keep(generation int, d *zipfile.Directory, stamps []stamp) error {
	s.m.step("write directory")
	if err := writeDurably(s.root, part("directory", generation), d.Raw); err != nil {
		return err
	}
	s.m.step("write stamps")
	return writeDurably(s.root, part("stamps", generation), appendStamps(make([]byte, 0, stampSize*len(stamps)), stamps))
}

// directory reads what the archive has in it, as it was when it was opened or
// synced last.
func (s *session) directory() (*zipfile.Directory, error) {
	raw, err := s.root.ReadFile(part("directory", s.Generation))
	if err != nil {
		return nil, err
	}
	return zipfile.Parse(raw, s.Archive.Size)
}

// stamps reads which files are as they were unpacked, by entry, of which there
// are n.
func (s *session) stamps(n int) ([]stamp, error) {
	b, err := s.root.ReadFile(part("stamps", s.Generation))
	if err != nil {
		return nil, err
	}
	list := parseStamps(b, n)
	if list == nil && n > 0 {
		return nil, errors.New("the stamps of the workspace do not fit its directory")
	}
	return list, nil
}

// part is the name of a file of a generation.
func part(what string, generation int) string {
	return fmt.Sprintf("%s-%d", what, generation)
}

// dropOtherGenerations removes what belongs to other generations than the present one.
func (s *session) dropOtherGenerations() {
	for _, generation := range []int{s.Generation - 1, s.Generation + 1} {
		for _, what := range []string{"removed", "stamps", "directory"} { // by the last of which it is found
			s.root.Remove(part(what, generation))
		}
	}
}
