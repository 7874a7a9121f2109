package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// What Kubernetes tells a pod of an indexed job, and what a job has to pass on:
// how many there are is not told by itself.
const (
	jobIndex = "JOB_COMPLETION_INDEX"
	jobCount = "JOB_COMPLETIONS"
)

// parseShard reads i/n, or for "job" what Kubernetes tells of an indexed job. The
// zero value means everything.
func parseShard(text string) (report.Shard, error) {
	switch text {
	case "":
		return report.Shard{}, nil
	case "job":
		return shardOfJob()
	}
	index, count, _ := strings.Cut(text, "/")
	s, err := shard(index, count, 0)
	if err != nil {
		return s, exit.Usagef("--shard %q: %w: write it as 1/3, from 1/3 to 3/3, or «job» within an indexed job", text, err)
	}
	return s, nil
}

func shardOfJob() (report.Shard, error) {
	index, count := os.Getenv(jobIndex), os.Getenv(jobCount)
	if index == "" || count == "" {
		return report.Shard{}, exit.Usagef("--shard job: %s and %s have to be set", jobIndex, jobCount)
	}
	s, err := shard(index, count, 1)
	if err != nil {
		return s, exit.Usagef("--shard job: %s is %q and %s %q: %w", jobIndex, index, jobCount, count, err)
	}
	return s, nil
}

// shard adds to the index what makes it count from 1.
func shard(index, count string, add int) (report.Shard, error) {
	i, errI := strconv.Atoi(index)
	n, errN := strconv.Atoi(count)
	if errI != nil || errN != nil {
		return report.Shard{}, fmt.Errorf("index and count have to be numbers")
	}
	s := report.Shard{Index: i + add, Count: n}
	if s.Count < 1 || s.Index < 1 || s.Index > s.Count {
		return report.Shard{}, fmt.Errorf("there is no such shard")
	}
	return s, nil
}
