package zipws

// Words are what messages call things to whoever calls: tools and parameters,
// or commands and options. Each fits where its example stands.
type Words struct {
	Open, Status, List, Path string // "open an archive with zipfs_open first"
	Prune                    string // "zipfs_prune with all removes it"
	Unarchive                string // "unpack it with write.unarchive"
	Session                  string // "say which with session"
	Sync, Discard, Force     string // "close it with sync", "with force it is overwritten"
	Recursive                string // "delete it with recursive"
	Lazy                     string // "open it with lazy"
	Parts                    string // "read it in parts with offset and limit"
	CreateDirs               string // "make it with create_dirs"
	All, Stale               string // "all, or stale with a duration"
	MaxSize                  string // "more than the size that the session was opened with"
}

// sizeSetting is what bounds sessions that were opened without a size.
const sizeSetting = "CONDUIT_ZIP_MAX_EXTRACTED_SIZE"

// limit is how many bytes the files of the session may have, and what says so.
func (s *session) limit() (bytes int64, said string) {
	if s.Limit > 0 {
		return s.Limit, s.m.Words.MaxSize
	}
	return s.m.Settings.MaxSize, sizeSetting
}
