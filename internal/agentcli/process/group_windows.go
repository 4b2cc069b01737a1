package process

import (
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is a job object, which ends with all its processes.
type group struct {
	cmd *exec.Cmd
	job windows.Handle
}

func newGroup(cmd *exec.Cmd, _ Spec) *group { return &group{cmd: cmd} }

func (g *group) started() {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	g.job = job
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, _ = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(g.cmd.Process.Pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	_ = windows.AssignProcessToJobObject(job, h)
}

func (g *group) close() {
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}

// end ends the job at once: there is no way to ask a process without a window.
func (g *group) end() {
	_ = g.cmd.Process.Kill()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
}

func marked(string) []int { return nil }
func above(string) string { return "" }
func terminate(int)       {}
func kill(int)            {}

func signalOf(*os.ProcessState) string { return "" }
