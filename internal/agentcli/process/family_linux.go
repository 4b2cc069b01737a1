package process

import (
	"bytes"
	"os"
	"strconv"
)

// alive reports whether a process of the group or with its mark runs. Zombies
// are dead: nobody may be there to reap them.
func (g *group) alive() bool { return len(marked(g.Mark, g.id)) > 0 }

// marked returns the running processes whose environment holds mark, or that
// belong to process group id where it is not 0.
func marked(mark string, id int) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		dead, pgrp, _ := state(name)
		if dead {
			continue
		}
		if id != 0 && pgrp == id || mark != "" && hasMark(name, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// state reads a process's state, group and parent from its stat line, in which
// the name, in parentheses, may hold anything.
func state(pid string) (dead bool, pgrp, parent int) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true, 0, 0
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 3 {
		return true, 0, 0
	}
	parent, _ = strconv.Atoi(string(f[1]))
	pgrp, _ = strconv.Atoi(string(f[2]))
	return f[0][0] == 'Z' || f[0][0] == 'X', pgrp, parent
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
		_, _, pid = state(id)
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
