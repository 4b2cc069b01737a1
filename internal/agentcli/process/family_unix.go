//go:build unix && !linux

package process

import "syscall"

func (g *group) alive() bool { return syscall.Kill(-g.id, 0) == nil }

func (g *group) adopt()   {}
func (g *group) started() { g.id = g.cmd.Process.Pid }
func (g *group) release() {}

func (g *group) members() []int { return nil }

func marked(string) []int { return nil }

func above(string) string { return "" }
