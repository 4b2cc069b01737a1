package zipws

// Settings say where workspaces are and how large they may get.
type Settings struct {
	Dir      string `env:"CONDUIT_ZIP_DATA_DIR,ZIPFS_DATA_DIR" kind:"data" default:"conduit-mcp/zip" doc:"Directory of zip workspaces; by default conduit-mcp/zip in the user's data directory."`
	MaxSize  int64  `env:"CONDUIT_ZIP_MAX_EXTRACTED_SIZE,ZIPFS_MAX_EXTRACTED_SIZE" default:"1073741824" min:"1" doc:"Most bytes that an archive may unpack to in a workspace."`
	MaxFiles int64  `env:"CONDUIT_ZIP_MAX_FILE_COUNT,ZIPFS_MAX_FILE_COUNT" default:"100000" min:"1" doc:"Most entries of an archive that is opened as a workspace."`
	MaxOpen  int64  `env:"CONDUIT_ZIP_MAX_SESSIONS,ZIPFS_MAX_SESSIONS" default:"32" min:"1" doc:"Most zip workspaces that are open at a time."`
	Links    bool   `env:"CONDUIT_ZIP_ALLOW_SYMLINKS,ZIPFS_ALLOW_SYMLINKS" default:"false" doc:"Whether symbolic links in archives are unpacked into workspaces; otherwise they are left out, and kept in the archive."`
}

// Limits that are no settings.
const (
	maxRatio     = 100      // of a file to what it is compressed to
	ratioFrom    = 1 << 20  // bytes of a file from which on that counts
	maxTotalDisk = 10 << 30 // bytes of all workspaces together
	backups      = 3        // earlier archives that sync keeps
)
