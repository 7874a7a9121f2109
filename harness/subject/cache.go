package subject

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// CacheVariable names the environment variable that moves the cache.
const CacheVariable = "PI_CONFORM_CACHE"

// cacheDir is the folder in which everything that is fetched lies.
func cacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", &Error{
			Problem: "this user has no cache folder: " + err.Error(),
			Cure:    "set " + CacheVariable + " to a folder that can be written",
		}
	}
	return filepath.Join(user, "pi-conform"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// place makes the folder dir by letting fill write into another one that takes
// its name when it is complete. Whoever else makes it at the same time is
// waited for.
func place(ctx context.Context, dir string, fill func(dir string) error) error {
	if exists(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := fill(temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	err = os.Rename(temp, dir)
	if err != nil && exists(dir) { // somebody was quicker
		return nil
	}
	return err
}

const (
	lockRefresh = time.Second
	lockStale   = 15 * time.Second
	lockPoll    = 100 * time.Millisecond
)

// lock makes the file, which its holder touches every second: one that has not
// been touched for long was left by a process that died. It spares work, no
// more: what two processes place at the same time is the same.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			f.Close()
			return hold(path), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err := os.Stat(path)
		if err == nil && time.Since(info.ModTime()) > lockStale {
			_ = os.Remove(path) // if it is gone already, all the better
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func hold(path string) (unlock func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(lockRefresh):
				now := time.Now()
				_ = os.Chtimes(path, now, now)
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		_ = os.Remove(path)
	}
}

// writeAdapters puts the files of the folders into the cache and gives the
// folder in which they are. Other contents get another folder, so a file that a
// subject is running is never changed.
func writeAdapters(ctx context.Context, cache string, files fs.FS, folders ...string) (string, error) {
	names, hash, err := contents(files, folders)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "adapters", hash)
	return dir, place(ctx, dir, func(temp string) error {
		for _, name := range names {
			if err := copyFile(files, name, temp); err != nil {
				return err
			}
		}
		return nil
	})
}

func contents(files fs.FS, folders []string) (names []string, hash string, err error) {
	sum := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			fmt.Fprintf(sum, "%s %d\n%s\n", name, len(text), text)
			names = append(names, name)
			return err
		})
		if err != nil {
			return nil, "", err
		}
	}
	return names, hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func copyFile(files fs.FS, name, dir string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
