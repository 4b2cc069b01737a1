//go:build !unix && !windows

package process

import (
	"os"
	"os/exec"
)

type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd, _ Spec) *group { return &group{cmd} }

func (g *group) started() {}
func (g *group) close()   {}
func (g *group) end()     { _ = g.cmd.Process.Kill() }

func marked(string) []int { return nil }
func above(string) string { return "" }
func terminate(int)       {}
func kill(int)            {}

func signalOf(*os.ProcessState) string { return "" }
