package journal

// Settings say where a journal is and how much it keeps.
type Settings struct {
	Dir string `env:"CONDUIT_JOURNAL_DIR" kind:"state" default:"conduit-mcp/journal" doc:"Directory that keeps what edit.undo brings back; by default conduit-mcp/journal in the user's state directory, NONE for no journal."`
	Max int64  `env:"CONDUIT_JOURNAL_MAX_BYTES" default:"1073741824" min:"1048576" doc:"Size of the journal, in bytes, above which the oldest changes are dropped; what is larger than a tenth of it is not kept."`
}
