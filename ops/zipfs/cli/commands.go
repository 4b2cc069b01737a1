package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

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
		return 0, registry.UsageError(fmt.Sprintf("%q is no size; write it like 500MB or 2GB", s))
	}
	return n << shift, nil
}

func (c *commands) open() *cobra.Command {
	var name, size string
	var lazy bool
	cmd := c.command("open ARCHIVE", "Open an archive as a session and print its directory", cobra.ExactArgs(1), func(ctx context.Context, r *run) error {
		most, err := bytesOf(size)
		if err != nil {
			return err
		}
		at, err := everywhere{}.Resolve(r.args[0])
		if err != nil {
			return err
		}
		o, err := r.manager.Open(ctx, at, zipws.OpenOptions{Name: name, MaxSize: most, Lazy: lazy})
		if err != nil {
			return err
		}
		r.warn(o.Warnings)
		where := o.Path
		if o.Lazy {
			where = "nothing is unpacked yet"
		}
		return r.say(o, "%s: %d files, %d bytes: %s", o.Name, o.Files, o.Bytes, where)
	})
	cmd.ValidArgsFunction = nil // files
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the session; made from that of the archive otherwise")
	cmd.Flags().StringVar(&size, "max-size", "", "most that the archive may unpack to, such as 500MB")
	cmd.Flags().BoolVar(&lazy, "lazy", false, "unpack nothing until path asks for the directory")
	return cmd
}

func (c *commands) close() *cobra.Command {
	var sync, discard bool
	cmd := c.command("close [SESSION]", "Close a session; changes are written with --sync and lost with --no-sync", cobra.MaximumNArgs(1), func(ctx context.Context, r *run) error {
		closed, err := r.manager.Close(ctx, r.session(), zipws.CloseOptions{Sync: sync, Discard: discard})
		if unsaved(err) && terminal(r.InOrStdin()) && terminal(r.ErrOrStderr()) && !r.JSON {
			_, message := zipws.Of(err)
			if closed.Synced, err = r.ask(message, err); err == nil {
				closed, err = r.manager.Close(ctx, r.session(), zipws.CloseOptions{Sync: closed.Synced, Discard: !closed.Synced})
			}
		}
		if err != nil {
			return err
		}
		if closed.Synced {
			return r.say(closed, "synced and closed")
		}
		return r.say(closed, "closed")
	})
	cmd.Flags().BoolVar(&sync, "sync", false, "write the changes to the archive first")
	cmd.Flags().BoolVar(&discard, "no-sync", false, "lose the changes")
	return cmd
}

// ask has a person decide whether changes are synced; otherwise is the error
// where they decide nothing.
func (r *run) ask(message string, otherwise error) (sync bool, err error) {
	fmt.Fprintf(r.ErrOrStderr(), "%s\nSync them? [y]es, [n]o, anything else to leave the session open: ", message)
	line, err := bufio.NewReader(r.InOrStdin()).ReadString('\n')
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

func (c *commands) sessions() *cobra.Command {
	return c.command("sessions", "List the open sessions", cobra.NoArgs, func(ctx context.Context, r *run) error {
		list, err := r.manager.Sessions(ctx)
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(struct {
				Sessions []zipws.Session `json:"sessions"`
			}{list})
		}
		for _, s := range list {
			if r.Quiet {
				fmt.Fprintln(r.OutOrStdout(), s.Name)
				continue
			}
			kind := ""
			switch {
			case s.Lazy:
				kind = " (lazy)"
			case s.ReadOnly:
				kind = " (read-only)"
			}
			fmt.Fprintf(r.OutOrStdout(), "%s  %s  %d files, %d bytes  %s%s\n", s.Name, s.ID[:8], s.Files, s.Bytes, s.Source, kind)
		}
		return nil
	})
}

func (c *commands) ls() *cobra.Command {
	var long, recursive bool
	cmd := c.command("ls [SESSION] [PATH]", "List files", cobra.MaximumNArgs(2), func(ctx context.Context, r *run) error {
		session, path := r.where(ctx, r.args)
		list, err := r.manager.List(ctx, session, path, recursive)
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(struct {
				Entries []zipws.Item `json:"entries"`
			}{list})
		}
		for _, i := range list {
			if long {
				fmt.Fprintf(r.OutOrStdout(), "%12d  %s  ", i.Size, time.Time(i.Modified).Local().Format("2006-01-02 15:04"))
			}
			fmt.Fprintln(r.OutOrStdout(), i.Name)
		}
		return nil
	})
	cmd.Flags().BoolVarP(&long, "long", "l", false, "with size and time")
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "with all that lies below")
	return cmd
}

func (c *commands) tree() *cobra.Command {
	var depth int
	cmd := c.command("tree [SESSION] [PATH]", "Draw the files as a tree", cobra.MaximumNArgs(2), func(ctx context.Context, r *run) error {
		session, path := r.where(ctx, r.args)
		t, err := r.manager.Tree(ctx, session, path, depth)
		if err != nil {
			return err
		}
		if r.Quiet && !r.JSON {
			_, err := fmt.Fprintln(r.OutOrStdout(), t.Text)
			return err
		}
		return r.say(t, "%s\n\n%d directories, %d files", t.Text, t.Dirs, t.Files)
	})
	cmd.Flags().IntVar(&depth, "max-depth", 0, "most levels; 0 for all")
	return cmd
}

func (c *commands) read() *cobra.Command {
	var offset, limit int64
	cmd := c.command("read [SESSION] PATH", "Print a file", cobra.RangeArgs(1, 2), func(ctx context.Context, r *run) error {
		session, path := workspacePath(r.args)
		if offset < 0 {
			return registry.UsageError("read: --offset counts from 0")
		}
		if r.JSON {
			content, err := r.manager.Content(ctx, session, path, zipws.ContentOptions{Offset: offset, Limit: max(limit, 0)})
			if err != nil {
				return err
			}
			return r.print(content)
		}
		out := bufio.NewWriter(r.OutOrStdout())
		if _, err := r.manager.Read(ctx, session, path, offset, limit, out); err != nil {
			return err
		}
		return out.Flush()
	})
	cmd.Flags().Int64Var(&offset, "offset", 0, "first byte")
	cmd.Flags().Int64Var(&limit, "limit", -1, "most bytes; all by default")
	return cmd
}

// written is what is told of a file that was written, as the tool tells it.
type written struct {
	Written bool  `json:"written"`
	Size    int64 `json:"size_bytes"`
}

func (c *commands) write() *cobra.Command {
	var text string
	var stdin bool
	cmd := c.command("write [SESSION] PATH", "Write a file, by default from standard input", cobra.RangeArgs(1, 2), func(ctx context.Context, r *run) (err error) {
		session, path := workspacePath(r.args)
		content := []byte(text)
		if !r.Flags().Changed("content") {
			if content, err = io.ReadAll(r.InOrStdin()); err != nil {
				return err
			}
		}
		if err := r.manager.Write(ctx, session, path, content, true); err != nil {
			return err
		}
		return r.say(written{true, int64(len(content))}, "%d bytes written", len(content))
	})
	cmd.Flags().StringVar(&text, "content", "", "what to write")
	cmd.Flags().BoolVar(&stdin, "stdin", false, "write what standard input holds")
	cmd.MarkFlagsMutuallyExclusive("content", "stdin")
	return cmd
}

// deleted is what is told of a file that was deleted, as the tool tells it.
type deleted struct {
	Deleted bool       `json:"deleted"`
	Path    zipws.Name `json:"path"`
}

func (c *commands) delete() *cobra.Command {
	var recursive bool
	cmd := c.command("delete [SESSION] PATH", "Delete a file, or a directory with -r", cobra.RangeArgs(1, 2), func(ctx context.Context, r *run) error {
		session, path := workspacePath(r.args)
		if err := r.manager.Delete(ctx, session, path, recursive); err != nil {
			return err
		}
		return r.say(deleted{true, path}, "%s deleted", path)
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "with all that lies below")
	return cmd
}

func (c *commands) grep() *cobra.Command {
	var o zipws.GrepOptions
	var numbers bool
	cmd := c.command("grep PATTERN [SESSION] [PATH]", "Search files for a regular expression", cobra.RangeArgs(1, 3), func(ctx context.Context, r *run) error {
		var session string
		session, o.Path = r.where(ctx, r.args[1:])
		o.Pattern = r.args[0]
		g, err := r.manager.Grep(ctx, session, o)
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(g)
		}
		for _, m := range g.Matches {
			if numbers {
				fmt.Fprintf(r.OutOrStdout(), "%s:%d:%s\n", m.File, m.Line, m.Text)
			} else {
				fmt.Fprintf(r.OutOrStdout(), "%s:%s\n", m.File, m.Text)
			}
		}
		if g.Truncated {
			r.warn([]string{"there are more matches; raise --max-results"})
		}
		return nil
	})
	cmd.Flags().StringVar(&o.Glob, "glob", "", "only files that match")
	cmd.Flags().BoolVarP(&o.IgnoreCase, "ignore-case", "i", false, "upper and lower case are the same")
	cmd.Flags().BoolVarP(&numbers, "line-number", "n", false, "with the number of the line")
	cmd.Flags().IntVar(&o.Max, "max-results", 0, "most lines; 100 by default")
	return cmd
}

func (c *commands) path() *cobra.Command {
	return c.command("path [SESSION]", "Print the directory of a session's files", cobra.MaximumNArgs(1), func(ctx context.Context, r *run) error {
		p, err := r.manager.Path(ctx, r.session(), nil)
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(struct {
				Path string `json:"path"`
			}{p})
		}
		if terminal(r.OutOrStdout()) {
			p += "\n"
		}
		_, err = io.WriteString(r.OutOrStdout(), p)
		return err
	})
}

func (c *commands) status() *cobra.Command {
	return c.command("status [SESSION]", "Tell what changed", cobra.MaximumNArgs(1), func(ctx context.Context, r *run) error {
		s, err := r.manager.Status(ctx, r.session())
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(s)
		}
		for _, list := range []struct {
			sign  string
			names []string
		}{{"M", s.Modified}, {"A", s.Added}, {"D", s.Deleted}} {
			for _, name := range list.names {
				fmt.Fprintln(r.OutOrStdout(), list.sign, name)
			}
		}
		r.warn(s.Warnings)
		if r.Quiet {
			return nil
		}
		_, err = fmt.Fprintf(r.OutOrStdout(), "%d unchanged\n", s.Unchanged)
		return err
	})
}

func (c *commands) diff() *cobra.Command {
	var lines int
	cmd := c.command("diff [SESSION] [PATH]", "Show what changed", cobra.MaximumNArgs(2), func(ctx context.Context, r *run) error {
		session, path := r.where(ctx, r.args)
		if lines < 0 {
			return registry.UsageError("diff: --context is a number of lines")
		}
		list, err := r.manager.Diff(ctx, session, path, lines)
		if err != nil {
			return err
		}
		if r.JSON {
			return r.print(struct {
				Changes []zipws.Change `json:"changes"`
			}{list})
		}
		for _, change := range list {
			if change.Diff == "" {
				fmt.Fprintf(r.OutOrStdout(), "%s %s (%s)\n", change.Kind, change.Name, change.Note)
			} else if _, err := io.WriteString(r.OutOrStdout(), change.Diff); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().IntVar(&lines, "context", 3, "lines round a change")
	return cmd
}

func (c *commands) sync() *cobra.Command {
	var o zipws.SyncOptions
	cmd := c.command("sync [SESSION]", "Write the changes to the archive", cobra.MaximumNArgs(1), func(ctx context.Context, r *run) error {
		s, err := r.manager.Sync(ctx, r.session(), o)
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
	})
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite an archive that was modified by others")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only tell what would be done")
	return cmd
}

func (c *commands) prune() *cobra.Command {
	var o zipws.PruneOptions
	var stale string
	cmd := c.command("prune", "Remove sessions, with changes that were not synced", cobra.NoArgs, func(ctx context.Context, r *run) (err error) {
		if stale != "" {
			if o.Stale, err = zipws.ParseAge(stale); err != nil {
				return err
			}
		}
		p, err := r.manager.Prune(ctx, o)
		if err != nil {
			return err
		}
		if r.JSON {
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
	})
	cmd.Flags().BoolVar(&o.All, "all", false, "all of them")
	cmd.Flags().StringVar(&stale, "stale", "", "those not used for an `AGE`, such as 24h or 7d")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only tell what would be removed")
	return cmd
}
