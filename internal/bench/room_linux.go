package main

import "syscall"

// memoryDir is a directory kept in memory that has room for so many bytes and
// files and leaves as much memory to the system, or "".
func memoryDir(bytes, files int64) string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return ""
	}
	if room := int64(fs.Bavail) * int64(fs.Bsize); room < bytes || int64(fs.Ffree) < files+files/50 || meminfo("MemAvailable") < 2*bytes {
		return ""
	}
	return dir
}
