package agentcli_test

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestDepthIsKnownWhereItWasHidden(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `env -u CONDUIT_AGENT_DEPTH "$0" & wait`, os.Args[0])
	cmd.Env = append(os.Environ(), "AGENTCLI_TEST_SERVER="+t.TempDir(), "AGENTCLI_TEST_TASK=d", "CONDUIT_AGENT_DEPTH=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	status, err := bufio.NewReader(out).ReadString('\n')
	if kerr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); kerr != nil {
		t.Error(kerr)
	}
	_ = cmd.Wait()
	if err != nil || status != "failed\n" {
		t.Errorf("a task one agent down is %q, %v", status, err)
	}
}
