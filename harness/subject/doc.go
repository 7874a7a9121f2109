// Package subject finds and starts subjects that are programs of their own: a
// command of the user's, or a release of a loop that npm has, which it installs
// into the user's cache on first use.
//
// Everything lies in one folder, pi-conform in the user's cache folder unless
// the variable PI_CONFORM_CACHE names another:
//
//	npm/NAME-VERSION/   a private folder in which npm installed one package
//	adapters/HASH/      the adapter programs, by the hash of their contents
//	bun/                what Bun keeps of programs that it has translated
//
// A folder appears there under its name only when it is complete, so what is
// there can be used without npm and without a network.
package subject
