//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// A group is a process group of its own, and what left it.
type group struct {
	Spec
	cmd *exec.Cmd
	id  int
}

func newGroup(cmd *exec.Cmd, s Spec) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g := &group{Spec: s, cmd: cmd}
	g.adopt()
	return g
}

func (g *group) close() { g.release() }

func (g *group) end() { endFamily(g, g.Clock, g.Grace, g.Hurry) }

func (g *group) ask()   { g.signal(syscall.SIGTERM) }
func (g *group) force() { g.signal(syscall.SIGKILL) }

func (g *group) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.id, s)
	for _, pid := range g.members() {
		_ = syscall.Kill(pid, s)
	}
}

func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }
func kill(pid int)      { _ = syscall.Kill(pid, syscall.SIGKILL) }

func signalOf(p *os.ProcessState) string {
	if st, ok := p.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return signalName(st.Signal())
	}
	return ""
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGSEGV:
		return "SIGSEGV"
	case syscall.SIGABRT:
		return "SIGABRT"
	case syscall.SIGPIPE:
		return "SIGPIPE"
	}
	return s.String()
}
