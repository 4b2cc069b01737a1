package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// firstValue is what a file of lines "KEY SEPARATOR VALUE" has for a key, or "".
func firstValue(file, key, separator string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), separator); ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// meminfo is a value of the kernel's account of memory in bytes, or 0.
func meminfo(key string) int64 {
	kB, _ := strconv.ParseInt(strings.TrimSuffix(firstValue("/proc/meminfo", key, ":"), " kB"), 10, 64)
	return kB << 10
}

// A row is a name and what stands beside it.
type row struct{ name, value string }

// machine describes where this runs, as far as the system tells.
func machine() []row {
	rows := []row{
		{"Processor", firstValue("/proc/cpuinfo", "model name", ":")},
		{"Cores", strconv.Itoa(runtime.NumCPU())},
		{"Memory", ""},
		{"System", firstValue("/etc/os-release", "PRETTY_NAME", "=")},
		{"Kernel", ""},
		{"Platform", runtime.GOOS + "/" + runtime.GOARCH},
	}
	if total := meminfo("MemTotal"); total > 0 {
		rows[2].value = fmt.Sprintf("%.0f GiB", float64(total)/(1<<30))
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		rows[4].value = strings.TrimSpace(string(release))
	}
	return rows
}

// tools are programs that may be measured beside servers, with how each tells
// its version.
var tools = [][]string{
	{"find", "--version"}, {"rg", "--version"}, {"grep", "--version"}, {"du", "--version"}, {"cat", "--version"}, {"cp", "--version"},
	{"diff", "--version"}, {"base64", "--version"}, {"sha256sum", "--version"}, {"openssl", "version"}, {"tar", "--version"},
	{"zip", "-v"}, {"unzip", "-v"}, {"7z"}, {"curl", "--version"}, {"convert-im6.q16", "-version"}, {"djpeg", "-version"},
	{"node", "--version"}, {"python3", "--version"},
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// toolVersions are those of the tools that are there.
func toolVersions() []row {
	var rows []row
	for _, argv := range tools {
		cmd := exec.Command(argv[0], argv[1:]...)
		out, _ := cmd.CombinedOutput()
		if v := versionNumber.Find(out); v != nil {
			rows = append(rows, row{argv[0], string(v)})
		}
	}
	return rows
}

// ourVersion is the commit that is measured, or "".
func ourVersion() string {
	out, err := exec.Command("git", "describe", "--always", "--tags", "--dirty").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
