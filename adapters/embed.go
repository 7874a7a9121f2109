// Package adapters holds the adapter programs that run under a runtime of their
// own, so that the binary can write them out: js is the adapter library for
// JavaScript and TypeScript, pi joins the npm loop. Both have to lie side by
// side.
package adapters

import "embed"

// Files are the directories js and pi, without their tests.
//
//go:embed js/*.mjs js/*.mts js/package.json pi/*.mjs
var Files embed.FS
