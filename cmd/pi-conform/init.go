package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/project"
)

func (p *program) initCommand() *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use:   "init --lang ts|python|go|rust|java [DIR]",
		Short: "write an adapter project that runs at once",
		Long: `Writes a project that joins a loop to pi-conform: an adapter, a toy loop to run it on at once, marked
places for your own loop, a pi-conform.yaml, a CI job and a README. No file is overwritten.`,
		Example: `  pi-conform init --lang python my-adapter
  cd my-adapter && pi-conform run`,
		Args: arguments(0, 1, false),
		RunE: func(_ *cobra.Command, args []string) error {
			return p.initProject(lang, args)
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "", "`LANGUAGE` of the loop: "+strings.Join(project.Languages(), ", "))
	return cmd
}

// languageAliases are other names that people type.
var languageAliases = map[string]string{"typescript": "ts", "javascript": "ts", "js": "ts", "py": "python", "golang": "go", "rs": "rust"}

func (p *program) initProject(lang string, args []string) error {
	if lang == "" {
		return exit.Usagef("--lang is missing: it has to be one of %s", strings.Join(project.Languages(), ", "))
	}
	if short, ok := languageAliases[lang]; ok {
		lang = short
	}
	if err := oneOf("language", lang, project.Languages()...); err != nil {
		return err
	}
	o := project.Options{Lang: lang, Dir: ".", Version: released(), Source: sourceDir()}
	if len(args) > 0 {
		o.Dir = args[0]
	}
	names, err := project.Write(o)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	for _, name := range names {
		p.out.Printf("%s\n", filepath.Join(o.Dir, filepath.FromSlash(name)))
	}
	next := "pi-conform run"
	if o.Dir != "." {
		next = "cd " + o.Dir + " && " + next
	}
	p.note("next: " + next)
	return nil
}

// released is the version of this program if others can have it too.
func released() string {
	v := currentVersion().Version
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "+") || strings.HasPrefix(v, "v0.0.0-") {
		return ""
	}
	return v
}

// sourceDir is where pi-conform's own source lies, if it lies here: where
// PI_CONFORM_SOURCE says, or where an unreleased program was built.
func sourceDir() string {
	if dir := os.Getenv("PI_CONFORM_SOURCE"); dir != "" {
		dir, err := filepath.Abs(dir)
		if err == nil {
			return dir
		}
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok || released() != "" || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "go.mod")); errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return root
}
