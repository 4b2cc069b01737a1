package process

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// runs are those under way, to one of which a process that left everything behind
// belongs.
var runs struct {
	sync.Mutex
	n    int
	pids map[int]bool // of the processes that were started here, which others wait for
	once sync.Once
}

// adopt has the system give orphaned descendants to this process instead of the
// first one, so that it is known where a daemon came from: its group, session
// and environment may all be its own.
func (g *group) adopt() {
	runs.once.Do(func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		runs.pids = map[int]bool{}
	})
	runs.Lock()
	defer runs.Unlock()
	runs.n++
}

func (g *group) started() {
	g.id = g.cmd.Process.Pid
	runs.Lock()
	defer runs.Unlock()
	runs.pids[g.id] = true
}

func (g *group) release() {
	runs.Lock()
	defer runs.Unlock()
	runs.n--
	delete(runs.pids, g.id)
}

// ours reports whether a child of this process, which s describes, was started
// here and not orphaned. What other packages start stays in this group.
func ours(pid int, s, self status) bool {
	runs.Lock()
	defer runs.Unlock()
	return s.group == self.group || runs.pids[pid] || s.group == pid && s.session == self.session && len(runs.pids) < runs.n
}

// alive reports whether a process of the group or with its mark runs, or a daemon
// that nobody else can have started.
func (g *group) alive() bool { return len(g.members()) > 0 }

func (g *group) members() []int {
	runs.Lock()
	alone := runs.n == 1 // otherwise those of the others end with the last run
	runs.Unlock()
	return find(g.Mark, g.id, alone)
}

// marked returns the running processes whose environment holds mark.
func marked(mark string) []int { return find(mark, 0, false) }

// find returns the running processes whose environment holds mark, that belong
// to process group id where it is not 0, and with daemons those of our children
// that have a session of their own: what is started here never has. Zombies are
// dead: nobody may be there to reap them but us.
func find(mark string, id int, daemons bool) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	here := os.Getpid()
	self := state(strconv.Itoa(here))
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == here {
			continue
		}
		s := state(name)
		if s.dead {
			if s.parent == here && !ours(pid, s, self) {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
			continue
		}
		if id != 0 && s.group == id || daemons && s.parent == here && s.session != self.session || mark != "" && hasMark(name, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A status is what the system tells of a process.
type status struct {
	dead                   bool
	parent, group, session int
}

// state reads the stat line of a process, in which the name, in parentheses, may
// hold anything.
func state(pid string) status {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return status{dead: true}
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 4 {
		return status{dead: true}
	}
	number := func(b []byte) int { n, _ := strconv.Atoi(string(b)); return n }
	return status{f[0][0] == 'Z' || f[0][0] == 'X', number(f[1]), number(f[2]), number(f[3])}
}

func above(name string) string {
	for pid := os.Getppid(); pid > 1; {
		id := strconv.Itoa(pid)
		env, _ := os.ReadFile("/proc/" + id + "/environ")
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
				return string(value)
			}
		}
		pid = state(id).parent
	}
	return ""
}

func hasMark(pid, mark string) bool {
	env, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}
