// Package adapters holds the adapter programs that run under a runtime of their
// own, so that the binary can write them out: js is the adapter library for
// JavaScript and TypeScript, pi joins the npm loop and oh-my-pi the one that was
// forked from it. They have to lie side by side.
//
// It also holds what an adapter project of each language is made of: the library
// beside this file, and its example.
package adapters

import "embed"

// Files are the directories js, pi and oh-my-pi, without their tests.
//
//go:embed js/*.mjs js/*.mts js/package.json pi/*.mjs oh-my-pi/*.mjs
var Files embed.FS

// Projects are the adapter libraries with their examples, by directory, and what
// projects of every language have in the directory project.
//
//go:embed js/*.mjs js/*.mts js/example/*
//go:embed python/*.py python/example/*.py
//go:embed go/example/*
//go:embed rust/*.rs rust/example/Cargo.toml rust/example/src/*.rs
//go:embed java/*.java java/example/*.java
//go:embed project/*.tmpl
var Projects embed.FS
