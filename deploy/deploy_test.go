// Package deploy_test holds the files for running on many machines to what reads
// them: the types of Kubernetes, and the shell. It is a module of its own, so that
// nobody else needs those.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func decode[T any](t *testing.T, file string) *T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &value
}

func variable(c *corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// TestManifests decodes strictly, and compares what has to agree.
func TestManifests(t *testing.T) {
	shard, merge := decode[batchv1.Job](t, "kubernetes/job.yaml"), decode[batchv1.Job](t, "kubernetes/merge.yaml")
	claim := decode[corev1.PersistentVolumeClaim](t, "kubernetes/volume.yaml")
	count := fmt.Sprint(*shard.Spec.Completions)
	for _, job := range []*batchv1.Job{shard, merge} {
		if job.APIVersion != "batch/v1" || job.Kind != "Job" {
			t.Errorf("%s is a %s of %s", job.Name, job.Kind, job.APIVersion)
		}
		pod := job.Spec.Template.Spec
		if got := variable(&pod.Containers[0], "JOB_COMPLETIONS"); got != count {
			t.Errorf("%s: JOB_COMPLETIONS is %q, and there are %s completions", job.Name, got, count)
		}
		if pod.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("%s does not use the volume %s", job.Name, claim.Name)
		}
		if pod.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: restart policy %s", job.Name, pod.RestartPolicy)
		}
	}
	if *shard.Spec.CompletionMode != batchv1.IndexedCompletion {
		t.Error("the job is not indexed: no pod knows its part")
	}
	if !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
		t.Error("only one node can write to the volume")
	}
}

// build builds the program into a folder that goes first on the path.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(bin, "pi-conform"), "./cmd/pi-conform")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// pod runs what a container of a job runs, as a process.
func pod(t *testing.T, job *batchv1.Job, bin string, env ...string) (int, string) {
	t.Helper()
	c := &job.Spec.Template.Spec.Containers[0]
	cmd := exec.Command(c.Command[0], append(slices.Clone(c.Command[1:]), c.Args...)...)
	for _, v := range c.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	return run(t, cmd)
}

func run(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestJobAsProcesses runs every pod of the job, then the merge, and compares with
// the run in one piece.
func TestJobAsProcesses(t *testing.T) {
	shard, merge := decode[batchv1.Job](t, "kubernetes/job.yaml"), decode[batchv1.Job](t, "kubernetes/merge.yaml")
	bin, results := build(t), t.TempDir()
	env := []string{"RESULTS=" + results, "SUBJECT=mutant:late-update-accepted", "SCHEDULES=2"}
	count := int(*shard.Spec.Completions)
	for i := range count {
		if i == count-1 { // one is still missing
			if code, out := pod(t, merge, bin, env...); code != 3 || !strings.Contains(out, "there are 7 reports, not 8") {
				t.Errorf("merged without the last shard: exit code %d\n%s", code, out)
			}
		}
		if code, out := pod(t, shard, bin, append(env, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i))...); code != 0 {
			t.Fatalf("shard %d: exit code %d\n%s", i, code, out)
		}
	}
	if code, out := pod(t, merge, bin, env...); code != 1 {
		t.Errorf("merge: exit code %d, want 1 for a broken rule\n%s", code, out)
	}
	whole := filepath.Join(results, "whole.json")
	run(t, exec.Command(filepath.Join(bin, "pi-conform"), "run", "mutant:late-update-accepted", "-q", "--schedules", "2", "--json", whole))
	if !bytes.Equal(read(t, filepath.Join(results, "report.json")), read(t, whole)) {
		t.Error("the merged report is not that of the run in one piece")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type step struct {
	ID  string            `json:"id"`
	Env map[string]string `json:"env"`
	Run string            `json:"run"`
}

func steps(t *testing.T, file string) []step {
	t.Helper()
	var doc struct {
		Runs struct{ Steps []step }
		Jobs map[string]struct{ Steps []step }
	}
	if err := yaml.Unmarshal(read(t, file), &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	all := doc.Runs.Steps
	for _, job := range doc.Jobs {
		all = append(all, job.Steps...)
	}
	return all
}

// TestNothingIsExpandedIntoAScript: an input that is pasted into a script is run
// by it.
func TestNothingIsExpandedIntoAScript(t *testing.T) {
	for _, file := range []string{"github/action.yml", "github/workflow.yml"} {
		scripts := 0
		for _, s := range steps(t, file) {
			if s.Run == "" {
				continue
			}
			scripts++
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: something is expanded into a script:\n%s", file, s.Run)
			}
			if regexp.MustCompile(`\beval\b`).MatchString(s.Run) {
				t.Errorf("%s: a script uses eval", file)
			}
		}
		if scripts == 0 {
			t.Errorf("%s has no script", file)
		}
	}
}

// TestActionRunsNoInput gives the action inputs that a careless script would run.
func TestActionRunsNoInput(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	echo := "#!/bin/sh\nfor word; do printf '[%s]\\n' \"$word\"; done\n"
	if err := os.WriteFile(filepath.Join(bin, "pi-conform"), []byte(echo), 0o755); err != nil {
		t.Fatal(err)
	}
	attack := "$(touch pwned) `touch pwned`; touch pwned; * \" '"
	for _, s := range steps(t, "github/action.yml") {
		if s.ID != "run" {
			continue
		}
		cmd := exec.Command("bash", "-c", s.Run)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		for name := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+attack)
		}
		cmd.Env = append(cmd.Env, "REPORTS=out", "COMMAND=node\nmy adapter.mjs\n"+attack)
		code, out := run(t, cmd)
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		for _, want := range []string{"[run]", "[" + attack + "]", "[--edition=" + attack + "]", "[--]\n[node]\n[my adapter.mjs]\n[" + attack + "]"} {
			if !strings.Contains(out, want) {
				t.Errorf("the command lacks %s:\n%s", want, out)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("an input was run")
	}
}

// TestFuzzTargets: the targets that are built exist.
func TestFuzzTargets(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^(\S+) (Fuzz\w+) \w+$`).FindAllStringSubmatch(string(read(t, "clusterfuzzlite/build.sh")), -1)
	if len(targets) == 0 {
		t.Fatal("build.sh builds nothing")
	}
	for _, target := range targets {
		cmd := exec.Command("go", "test", "-list", "^"+target[2]+"$", "./"+target[1])
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), target[2]) {
			t.Errorf("%s has no target %s (%v)\n%s", target[1], target[2], err, out)
		}
	}
	if out, err := exec.Command("bash", "-n", "clusterfuzzlite/build.sh").CombinedOutput(); err != nil {
		t.Errorf("build.sh: %s", out)
	}
}
