//go:build !unix && !windows

package process

import (
	"os"
	"os/exec"
	"time"
)

type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd, _ string) *group { return &group{cmd} }

func (g *group) started()                           {}
func (g *group) close()                             {}
func (g *group) end(time.Duration, <-chan struct{}) { _ = g.cmd.Process.Kill() }

func marked(string, int) []int { return nil }
func above(string) string      { return "" }
func terminate(int)            {}
func kill(int)                 {}

func signalOf(*os.ProcessState) string { return "" }
