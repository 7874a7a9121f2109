// Package adapters holds the adapter programs that run under a runtime of their
// own, so that the binary can write them out: js is the adapter library for
// JavaScript and TypeScript, pi joins the npm loop and oh-my-pi the one that was
// forked from it. They have to lie side by side.
package adapters

import "embed"

// Files are the directories js, pi and oh-my-pi, without their tests.
//
//go:embed js/*.mjs js/*.mts js/package.json pi/*.mjs oh-my-pi/*.mjs
var Files embed.FS
