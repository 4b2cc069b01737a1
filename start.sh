#!/usr/bin/env bash
# Starts the stdio server: the built binary where there is one, else from
# source. Arguments are passed on.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export LOG_LEVEL="${LOG_LEVEL:-INFO}"
if [[ -x "$here/bin/conduit-mcp" ]]; then
	exec "$here/bin/conduit-mcp" "$@"
fi
# go changes the directory, and relative paths must start from this one.
export STARTED_IN="$PWD"
exec go -C "$here" run -exec "sh -c 'cd \"\$STARTED_IN\" && exec \"\$0\" \"\$@\"'" ./cmd/conduit-mcp "$@"
