package zipws

import "github.com/conduit-mcp/conduit-mcp/registry/fault"

// The codes of zip workspaces.
const (
	SessionNotFound   fault.Code = "SESSION_NOT_FOUND"  // the name or id matches no session
	AmbiguousSession  fault.Code = "AMBIGUOUS_SESSION"  // several sessions are open and none, or the start of several ids, was given
	NoSessions        fault.Code = "NO_SESSIONS"        // no session is open
	ZipNotFound       fault.Code = "ZIP_NOT_FOUND"      // the archive does not exist or cannot be read
	ZipInvalid        fault.Code = "ZIP_INVALID"        // not an archive, damaged, or with entries that are not safe
	ZipBomb           fault.Code = "ZIP_BOMB_DETECTED"  // extracted size, ratio or count exceeds a limit
	ConflictDetected  fault.Code = "CONFLICT_DETECTED"  // the archive was modified since it was opened
	SyncFailed        fault.Code = "SYNC_FAILED"        // the archive could not be written; it is as it was
	PathTraversal     fault.Code = "PATH_TRAVERSAL"     // a path leads outside the workspace
	PathNotFound      fault.Code = "PATH_NOT_FOUND"     // the path does not exist in the workspace
	Locked            fault.Code = "LOCKED"             // another operation has the session
	LimitExceeded     fault.Code = "LIMIT_EXCEEDED"     // sessions, disk or the size of an answer
	NameCollision     fault.Code = "NAME_COLLISION"     // a session of that name is open
	UnsavedChanges    fault.Code = "UNSAVED_CHANGES"    // a session with changes is closed without sync or discard
	UnsupportedFormat fault.Code = "UNSUPPORTED_FORMAT" // an archive of another kind, or compressed in a way that is not read
	Encrypted         fault.Code = "ENCRYPTED"          // encrypted entries are not read
	NotEmpty          fault.Code = "NOT_EMPTY"          // a directory with something in it, deleted without recursive
	InvalidParams     fault.Code = "INVALID_PARAMS"     // a parameter is missing, mistyped or makes no sense
	ReadOnly          fault.Code = "READ_ONLY"          // the archive is of a format that is not written
	AccessDenied      fault.Code = "ACCESS_DENIED"      // outside the allowed directories, or denied by the system
	IOError           fault.Code = "IO_ERROR"           // any other failure of the file system
	Internal          fault.Code = "INTERNAL_ERROR"     // a bug or an unforeseen failure
)

// Errors is how zip workspaces spell errors: {"error":{"code","message"}}, the
// shared codes renamed to their own.
var Errors = fault.Dialect{
	Rename: map[fault.Code]fault.Code{
		fault.InvalidParameter: InvalidParams,
		fault.FSBadPathInput:   InvalidParams,
		fault.FSIsFile:         InvalidParams,
		fault.FSIsDirectory:    InvalidParams,
		fault.FSPathResolution: InvalidParams,
		fault.FSNotFound:       PathNotFound,
		fault.FSAccessDenied:   AccessDenied,
		fault.FSAlreadyExists:  IOError,
		fault.FSReadFailed:     IOError,
		fault.FSWriteFailed:    IOError,
		fault.FSDeleteFailed:   IOError,
		fault.FSOperation:      IOError,
		fault.LimitExceeded:    LimitExceeded,
		fault.Unarchive:        ZipInvalid,
		fault.ArchiveRead:      ZipInvalid,
		fault.ArchivePath:      ZipInvalid,
		fault.ArchiveDetect:    ZipInvalid,
		fault.ArchiveFormat:    UnsupportedFormat,
		fault.Internal:         Internal,
	},
	Encode: func(c fault.Code, message string) any { return Failure{Fault{c, message}} },
}

// A Failure is an error as results tell it.
type Failure struct {
	Error Fault `json:"error"`
}

// A Fault is the code and message of a [Failure].
type Fault struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// Of reports the code and message of err as zip workspaces spell them.
func Of(err error) (fault.Code, string) {
	f := Errors.Render(err).(Failure)
	return f.Error.Code, f.Error.Message
}
