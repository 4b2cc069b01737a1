package zipcmd

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
)

// commands lists all commands, in the order of the help.
func commands() []command {
	return []command{
		{"open", "open ARCHIVE [--name NAME] [--max-size SIZE] [--lazy]", "open an archive as a session and print its directory", openArchive},
		{"close", "close [SESSION] [--sync|--no-sync]", "close a session; changes are written with --sync and lost with --no-sync", closeSession},
		{"sessions", "sessions", "list the open sessions", sessions},
		{"ls", "ls [PATH] [--long] [-r]", "list files", ls},
		{"tree", "tree [PATH] [--max-depth N]", "draw the files as a tree", tree},
		{"read", "read PATH [--offset N] [--limit N]", "print a file", read},
		{"write", "write PATH [--content TEXT|--stdin]", "write a file, by default from standard input", write},
		{"delete", "delete PATH [-r]", "delete a file, or a directory with -r", remove},
		{"grep", "grep PATTERN [PATH] [--glob GLOB] [-i] [-n] [--max-results N]", "search files for a regular expression", grep},
		{"path", "path [SESSION]", "print the directory of a session's files", path},
		{"status", "status [SESSION]", "tell what changed", status},
		{"diff", "diff [PATH] [--context N]", "show what changed", diff},
		{"sync", "sync [SESSION] [--force] [--dry-run]", "write the changes to the archive", sync},
		{"prune", "prune --all|--stale AGE [--dry-run]", "remove sessions, with changes that were not synced", prune},
		{"completion", "completion bash|zsh|fish", "print a script that completes commands in a shell", completion},
	}
}

func openArchive(r *run) func(context.Context) error {
	name := r.flags.String("name", "", "")
	size := r.flags.String("max-size", "", "")
	lazy := r.flags.Bool("lazy", false, "")
	return func(ctx context.Context) error {
		if err := r.most(1); err != nil {
			return err
		}
		if len(r.args) == 0 {
			return usageError("open: name an archive")
		}
		most, err := bytesOf(*size)
		if err != nil {
			return err
		}
		at, err := everywhere{}.Resolve(r.args[0])
		if err != nil {
			return err
		}
		o, err := r.m.Open(ctx, at, zipws.OpenOptions{Name: *name, MaxSize: most, Lazy: *lazy})
		if err != nil {
			return err
		}
		r.warn(o.Warnings)
		where := o.Path
		if o.Lazy {
			where = "nothing is unpacked yet"
		}
		return r.say(o, "%s: %d files, %d bytes: %s", o.Name, o.Files, o.Bytes, where)
	}
}

// bytesOf reads a size: bytes, or with a unit such as 500MB or 2GiB, which
// count in steps of 1024.
func bytesOf(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	text := strings.ToUpper(strings.TrimSpace(s))
	text = strings.TrimSuffix(strings.TrimSuffix(text, "B"), "I")
	shift := 0
	if text != "" {
		if i := strings.IndexByte("KMGT", text[len(text)-1]); i >= 0 {
			shift, text = 10*(i+1), text[:len(text)-1]
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return 0, usageError(fmt.Sprintf("%q is no size; write it like 500MB or 2GB", s))
	}
	return n << shift, nil
}

func closeSession(r *run) func(context.Context) error {
	yes := r.flags.Bool("sync", false, "")
	no := r.flags.Bool("no-sync", false, "")
	return func(ctx context.Context) error {
		session, err := r.session()
		if err != nil {
			return err
		}
		c, err := r.m.Close(ctx, session, zipws.CloseOptions{Sync: *yes, Discard: *no})
		if unsaved(err) && terminal(r.stdin) && terminal(r.stderr) && !r.json {
			_, message := zipws.Of(err)
			if c.Synced, err = r.ask(message, err); err == nil {
				c, err = r.m.Close(ctx, session, zipws.CloseOptions{Sync: c.Synced, Discard: !c.Synced})
			}
		}
		if err != nil {
			return err
		}
		if c.Synced {
			return r.say(c, "synced and closed")
		}
		return r.say(c, "closed")
	}
}

// ask has a person decide whether changes are synced; otherwise is the error
// where they decide nothing.
func (r *run) ask(message string, otherwise error) (sync bool, err error) {
	fmt.Fprintf(r.stderr, "%s\nSync them? [y]es, [n]o, anything else to leave the session open: ", message)
	line, err := bufio.NewReader(r.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	case "n", "no":
		return false, nil
	}
	return false, otherwise
}

func sessions(r *run) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.most(0); err != nil {
			return err
		}
		list, err := r.m.Sessions(ctx)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(struct {
				Sessions []zipws.Session `json:"sessions"`
			}{list})
		}
		for _, s := range list {
			if r.quiet {
				fmt.Fprintln(r.stdout, s.Name)
				continue
			}
			kind := ""
			switch {
			case s.Lazy:
				kind = " (lazy)"
			case s.ReadOnly:
				kind = " (read-only)"
			}
			fmt.Fprintf(r.stdout, "%s  %s  %d files, %d bytes  %s%s\n", s.Name, s.ID[:8], s.Files, s.Bytes, s.Source, kind)
		}
		return nil
	}
}

func ls(r *run) func(context.Context) error {
	long := r.flags.Bool("long", false, "")
	r.flags.BoolVar(long, "l", false, "")
	recursive := r.flags.Bool("r", false, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, true)
		if err != nil {
			return err
		}
		list, err := r.m.List(ctx, session, path, *recursive)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(struct {
				Entries []zipws.Item `json:"entries"`
			}{list})
		}
		for _, i := range list {
			if *long {
				fmt.Fprintf(r.stdout, "%12d  %s  ", i.Size, time.Time(i.Modified).Local().Format("2006-01-02 15:04"))
			}
			fmt.Fprintln(r.stdout, i.Name)
		}
		return nil
	}
}

func tree(r *run) func(context.Context) error {
	depth := r.flags.Int("max-depth", 0, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, true)
		if err != nil {
			return err
		}
		t, err := r.m.Tree(ctx, session, path, *depth)
		if err != nil {
			return err
		}
		if r.quiet && !r.json {
			_, err := fmt.Fprintln(r.stdout, t.Text)
			return err
		}
		return r.say(t, "%s\n\n%d directories, %d files", t.Text, t.Dirs, t.Files)
	}
}

func read(r *run) func(context.Context) error {
	offset := r.flags.Int64("offset", 0, "")
	limit := r.flags.Int64("limit", -1, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, false)
		if err != nil {
			return err
		}
		if *offset < 0 {
			return usageError("read: --offset counts from 0")
		}
		if r.json {
			c, err := r.m.Content(ctx, session, path, zipws.ContentOptions{Offset: *offset, Limit: max(*limit, 0)})
			if err != nil {
				return err
			}
			return r.print(c)
		}
		out := bufio.NewWriter(r.stdout)
		if _, err := r.m.Read(ctx, session, path, *offset, *limit, out); err != nil {
			return err
		}
		return out.Flush()
	}
}

// written is what is told of a file that was written, as the tool tells it.
type written struct {
	Written bool  `json:"written"`
	Size    int64 `json:"size_bytes"`
}

func write(r *run) func(context.Context) error {
	text := r.flags.String("content", "", "")
	fromStdin := r.flags.Bool("stdin", false, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, false)
		if err != nil {
			return err
		}
		content := []byte(*text)
		given := false
		r.flags.Visit(func(f *flag.Flag) { given = given || f.Name == "content" })
		if given && *fromStdin {
			return usageError("write: give --content or --stdin, not both")
		}
		if !given {
			if content, err = io.ReadAll(r.stdin); err != nil {
				return err
			}
		}
		if err := r.m.Write(ctx, session, path, content, true); err != nil {
			return err
		}
		return r.say(written{true, int64(len(content))}, "%d bytes written", len(content))
	}
}

// deleted is what is told of a file that was deleted, as the tool tells it.
type deleted struct {
	Deleted bool       `json:"deleted"`
	Path    zipws.Name `json:"path"`
}

func remove(r *run) func(context.Context) error {
	recursive := r.flags.Bool("r", false, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, false)
		if err != nil {
			return err
		}
		if err := r.m.Delete(ctx, session, path, *recursive); err != nil {
			return err
		}
		return r.say(deleted{true, path}, "%s deleted", path)
	}
}

func grep(r *run) func(context.Context) error {
	var o zipws.GrepOptions
	r.flags.StringVar(&o.Glob, "glob", "", "")
	r.flags.BoolVar(&o.IgnoreCase, "i", false, "")
	numbers := r.flags.Bool("n", false, "")
	r.flags.IntVar(&o.Max, "max-results", 0, "")
	return func(ctx context.Context) error {
		if len(r.args) == 0 {
			return usageError("grep: a pattern is missing")
		}
		o.Pattern = r.args[0]
		var session string
		var err error
		if session, o.Path, err = r.place(r.args[1:], true); err != nil {
			return err
		}
		g, err := r.m.Grep(ctx, session, o)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(g)
		}
		for _, m := range g.Matches {
			if *numbers {
				fmt.Fprintf(r.stdout, "%s:%d:%s\n", m.File, m.Line, m.Text)
			} else {
				fmt.Fprintf(r.stdout, "%s:%s\n", m.File, m.Text)
			}
		}
		if g.Truncated {
			r.warn([]string{"there are more matches; raise --max-results"})
		}
		return nil
	}
}

func path(r *run) func(context.Context) error {
	return func(ctx context.Context) error {
		session, err := r.session()
		if err != nil {
			return err
		}
		p, err := r.m.Path(ctx, session, nil)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(struct {
				Path string `json:"path"`
			}{p})
		}
		if terminal(r.stdout) {
			p += "\n"
		}
		_, err = io.WriteString(r.stdout, p)
		return err
	}
}

func status(r *run) func(context.Context) error {
	return func(ctx context.Context) error {
		session, err := r.session()
		if err != nil {
			return err
		}
		s, err := r.m.Status(ctx, session)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(s)
		}
		for _, list := range []struct {
			sign  string
			names []string
		}{{"M", s.Modified}, {"A", s.Added}, {"D", s.Deleted}} {
			for _, name := range list.names {
				fmt.Fprintln(r.stdout, list.sign, name)
			}
		}
		r.warn(s.Warnings)
		if r.quiet {
			return nil
		}
		_, err = fmt.Fprintf(r.stdout, "%d unchanged\n", s.Unchanged)
		return err
	}
}

func diff(r *run) func(context.Context) error {
	lines := r.flags.Int("context", 3, "")
	return func(ctx context.Context) error {
		session, path, err := r.place(r.args, true)
		if err != nil {
			return err
		}
		if *lines < 0 {
			return usageError("diff: --context is a number of lines")
		}
		list, err := r.m.Diff(ctx, session, path, *lines)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(struct {
				Changes []zipws.Change `json:"changes"`
			}{list})
		}
		for _, c := range list {
			if c.Diff == "" {
				fmt.Fprintf(r.stdout, "%s %s (%s)\n", c.Kind, c.Name, c.Note)
			} else if _, err := io.WriteString(r.stdout, c.Diff); err != nil {
				return err
			}
		}
		return nil
	}
}

func sync(r *run) func(context.Context) error {
	var o zipws.SyncOptions
	r.flags.BoolVar(&o.Force, "force", false, "")
	r.flags.BoolVar(&o.DryRun, "dry-run", false, "")
	return func(ctx context.Context) error {
		session, err := r.session()
		if err != nil {
			return err
		}
		s, err := r.m.Sync(ctx, session, o)
		if err != nil {
			return err
		}
		r.warn(s.Warnings)
		what := fmt.Sprintf("%d modified, %d added, %d deleted", s.Modified, s.Added, s.Deleted)
		switch {
		case o.DryRun:
			return r.say(s, "would sync: %s; the archive would have %d bytes", what, *s.Estimated)
		case s.Backup == "":
			return r.say(s, "nothing to sync")
		}
		return r.say(s, "synced: %s; the archive as it was is %s", what, s.Backup)
	}
}

func prune(r *run) func(context.Context) error {
	var o zipws.PruneOptions
	r.flags.BoolVar(&o.All, "all", false, "")
	stale := r.flags.String("stale", "", "")
	r.flags.BoolVar(&o.DryRun, "dry-run", false, "")
	return func(ctx context.Context) error {
		if err := r.most(0); err != nil {
			return err
		}
		if *stale != "" {
			var err error
			if o.Stale, err = zipws.ParseAge(*stale); err != nil {
				return err
			}
		}
		p, err := r.m.Prune(ctx, o)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(p)
		}
		verb := "removed"
		if o.DryRun {
			verb = "would remove"
		}
		for _, s := range p.Pruned {
			r.say(nil, "%s %s: %s", verb, s.Name, s.Reason)
		}
		for _, s := range p.Skipped {
			r.say(nil, "left %s: %s", s.Name, s.Reason)
		}
		return r.say(nil, "%d bytes", p.Freed)
	}
}

func completion(r *run) func(context.Context) error {
	return func(context.Context) error {
		var names []string
		for _, c := range commands() {
			names = append(names, c.name)
		}
		words := strings.Join(names, " ")
		shell := ""
		if len(r.args) == 1 {
			shell = r.args[0]
		}
		script, ok := map[string]string{
			"bash": bashCompletion, "zsh": "autoload -U +X bashcompinit && bashcompinit\n" + bashCompletion, "fish": fishCompletion,
		}[shell]
		if !ok {
			return usageError("completion: name a shell: bash, zsh or fish")
		}
		_, err := io.WriteString(r.stdout, strings.ReplaceAll(script, "COMMANDS", words))
		return err
	}
}

const bashCompletion = `_conduit_mcp_zip() {
  local word=${COMP_WORDS[COMP_CWORD]}
  [ "${COMP_WORDS[1]}" = zip ] || return
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "COMMANDS" -- "$word"))
  elif [ "${COMP_WORDS[2]}" = open ]; then
    COMPREPLY=($(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(conduit-mcp zip sessions --quiet 2>/dev/null)" -- "$word"))
  fi
}
complete -o default -F _conduit_mcp_zip conduit-mcp
`

const fishCompletion = `complete -c conduit-mcp -n '__fish_seen_subcommand_from zip; and not __fish_seen_subcommand_from COMMANDS' -f -a 'COMMANDS'
complete -c conduit-mcp -n '__fish_seen_subcommand_from zip; and __fish_seen_subcommand_from COMMANDS; and not __fish_seen_subcommand_from open' -f -a '(conduit-mcp zip sessions --quiet 2>/dev/null)'
`
