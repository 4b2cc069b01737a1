//go:build !unix

package main

import "os/exec"

func leaveSession(*exec.Cmd) {}
