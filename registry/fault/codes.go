package fault

// A Code is the machine-readable name of a failure, such as ERR_FS_NOT_FOUND.
// The codes are those of the specification's Appendix A and PreconditionFailed.
type Code string

const (
	MCPInvalidRequest Code = "ERR_MCP_INVALID_REQUEST"       // a message that is not valid JSON or JSON-RPC
	UnknownTool       Code = "ERR_UNKNOWN_TOOL"              // no tool of that name
	UnknownOperation  Code = "ERR_UNKNOWN_OPERATION_ACTION"  // the tool has no such operation or action
	InvalidParameter  Code = "ERR_INVALID_PARAMETER"         // missing, mistyped or out of range
	MissingEntries    Code = "ERR_MISSING_ENTRIES_FOR_BATCH" // unused: section 5.2 of the specification asks for InvalidParameter in its place

	ConfigInvalid    Code = "ERR_CONFIG_INVALID"      // a setting that cannot be parsed; the server does not start
	FSBadAllowedPath Code = "ERR_FS_BAD_ALLOWED_PATH" // an allowed path that is no directory

	FSAccessDenied   Code = "ERR_FS_ACCESS_DENIED"          // outside the allowed directories, denied by a rule or by the system
	FSPathResolution Code = "ERR_FS_PATH_RESOLUTION_FAILED" // a component is no directory, links loop, or ~name was asked for
	FSNotFound       Code = "ERR_FS_NOT_FOUND"              // the file or directory does not exist
	FSIsFile         Code = "ERR_FS_IS_FILE"                // a directory was expected
	FSIsDirectory    Code = "ERR_FS_IS_DIRECTORY"           // a file was expected
	FSAlreadyExists  Code = "ERR_FS_ALREADY_EXISTS"         // it exists, and the call asked not to overwrite
	FSReadFailed     Code = "ERR_FS_READ_FAILED"            // reading failed midway
	FSWriteFailed    Code = "ERR_FS_WRITE_FAILED"           // writing failed; nothing was changed
	FSDeleteFailed   Code = "ERR_FS_DELETE_FAILED"          // not empty without recursive, or refused by the system
	FSOperation      Code = "ERR_FS_OPERATION_FAILED"       // any other file system failure
	FSBadPathInput   Code = "ERR_FS_BAD_PATH_INPUT"         // empty, over 4096 bytes, NUL or U+FFFD

	HTTPInvalidURL    Code = "ERR_HTTP_INVALID_URL"           // malformed, or neither http nor https
	HTTPRequestFailed Code = "ERR_HTTP_REQUEST_FAILED"        // network failure, or refused by a rule
	HTTPTimeout       Code = "ERR_HTTP_TIMEOUT"               // the exchange took longer than CONDUIT_HTTP_TIMEOUT_MS
	HTTPStatus        Code = "ERR_HTTP_STATUS_ERROR"          // the server answered 400 or above
	HTTPRange         Code = "ERR_HTTP_RANGE_NOT_SATISFIABLE" // the server cannot serve a range that exists

	MarkdownConversion Code = "ERR_MARKDOWN_CONVERSION_FAILED"         // HTML could not be converted
	MarkdownExtraction Code = "ERR_MARKDOWN_CONTENT_EXTRACTION_FAILED" // no main content was found
	ImageProcessing    Code = "ERR_IMAGE_PROCESSING_FAILED"            // an image could not be decoded or fitted
	UnsupportedImage   Code = "ERR_UNSUPPORTED_IMAGE_TYPE"             // not an image type that can be processed
	ChecksumFailed     Code = "ERR_CHECKSUM_FAILED"                    // hashing failed midway
	ChecksumAlgorithm  Code = "ERR_UNSUPPORTED_CHECKSUM_ALGORITHM"     // not md5, sha1, sha256 or sha512
	DiffFailed         Code = "ERR_DIFF_FAILED"                        // binary files, or the diff failed
	BinaryAsText       Code = "ERR_CANNOT_REPRESENT_BINARY_AS_TEXT"    // unused: the placeholder is a success (spec 5.1)

	ArchiveCreation Code = "ERR_ARCHIVE_CREATION_FAILED"         // the archive could not be written
	ArchiveRead     Code = "ERR_ARCHIVE_READ_FAILED"             // no source could be read
	Unarchive       Code = "ERR_UNARCHIVE_FAILED"                // corrupt archive or failed extraction
	ArchiveFormat   Code = "ERR_UNSUPPORTED_ARCHIVE_FORMAT"      // not a format this server writes or reads
	ArchiveDetect   Code = "ERR_COULD_NOT_DETECT_ARCHIVE_FORMAT" // neither extension nor content tells the format
	ArchivePath     Code = "ERR_ARCHIVE_PATH_INVALID"            // the archive or destination cannot be used

	LimitExceeded        Code = "ERR_RESOURCE_LIMIT_EXCEEDED"      // a limit; the message names it
	TooDeep              Code = "ERR_RECURSIVE_OPERATION_TOO_DEEP" // nested beyond what can be handled
	RecursiveSizeTimeout Code = "ERR_RECURSIVE_SIZE_TIMEOUT"       // unused: the entry carries size_bytes null and a note instead (spec 5.3)

	Internal       Code = "ERR_INTERNAL_SERVER_ERROR" // a bug or an unforeseen failure
	NotImplemented Code = "ERR_NOT_IMPLEMENTED"       // specified, but not in this version

	// PreconditionFailed is the one code beyond Appendix A: an if_match etag
	// that no longer holds. Nothing was written.
	PreconditionFailed Code = "ERR_PRECONDITION_FAILED"
)
