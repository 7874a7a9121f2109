package subject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// published is a loop that npm has.
type published struct {
	name     string   // before the @ where a release is named
	packages []string // that it was published as, the newer name first
	folder   string   // what the names of its folders in the cache begin with
	example  string   // a version that there is
}

// at is how a release is named.
func (p *published) at(version string) string { return p.name + "@" + version }

func (p *published) list(versions []string) string {
	names := make([]string, len(versions))
	for i, version := range versions {
		names[i] = p.at(version)
	}
	return strings.Join(names, ", ")
}

// release gives the folder of the installed package of a version, or of the newest
// one if version is empty.
func (o *Options) release(ctx context.Context, cache string, p *published, version string) (string, error) {
	if version != "" && !releaseForm.MatchString(version) {
		return "", &Error{
			Problem: fmt.Sprintf("%q is no version", version),
			Cure:    "give a whole one, such as " + p.at(p.example),
		}
	}
	if version != "" {
		if folder := p.installed(cache, version); folder != "" {
			return folder, nil
		}
	}
	folder, err := o.fetch(ctx, cache, p, version)
	if err == nil || ctx.Err() != nil {
		return folder, err
	}
	return o.makeDo(cache, p, version, err)
}

// makeDo uses the newest release that is there, if any would do.
func (o *Options) makeDo(cache string, p *published, version string, err error) (string, error) {
	have := p.cached(cache)
	if version != "" || len(have) == 0 {
		return "", p.withInstalled(err, have)
	}
	newest := have[len(have)-1]
	fmt.Fprintf(o.progress(), "cannot ask npm for the newest release (%v); using %s, the newest one installed\n", err, p.at(newest))
	return p.installed(cache, newest), nil
}

// withInstalled adds to an error which releases can be had all the same.
func (p *published) withInstalled(err error, have []string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(have) == 0 {
		return err
	}
	cures := []string{"installed already: " + p.list(have)}
	if e.Cure != "" {
		cures = append([]string{e.Cure}, cures...)
	}
	return &Error{Problem: e.Problem, Cure: strings.Join(cures, "; ")}
}

func (p *published) dir(cache, version string) string {
	return filepath.Join(cache, "npm", p.folder+version)
}

// installed is the folder of the package of that version, if it is there.
func (p *published) installed(cache, version string) string {
	for _, name := range p.packages {
		folder := filepath.Join(p.dir(cache, version), "node_modules", filepath.FromSlash(name))
		if exists(filepath.Join(folder, "package.json")) {
			return folder
		}
	}
	return ""
}

// cached lists the releases that are there, oldest first.
func (p *published) cached(cache string) []string {
	entries, _ := os.ReadDir(filepath.Join(cache, "npm")) // none if there is no folder
	var versions []string
	for _, e := range entries {
		version, ok := strings.CutPrefix(e.Name(), p.folder)
		if ok && p.installed(cache, version) != "" {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, compareReleases)
	return versions
}

func (o *Options) fetch(ctx context.Context, cache string, p *published, version string) (string, error) {
	n, err := findNPM(o.progress())
	if err != nil {
		return "", err
	}
	name, version, err := n.find(ctx, p, version)
	if err != nil {
		return "", err
	}
	if folder := p.installed(cache, version); folder != "" {
		return folder, nil
	}
	if err := n.install(ctx, p.dir(cache, version), name+"@"+version); err != nil {
		return "", err
	}
	folder := p.installed(cache, version)
	if folder == "" {
		return "", &Error{
			Problem: fmt.Sprintf("npm said that it installed %s@%s, but it is not in %s", name, version, p.dir(cache, version)),
			Cure:    "remove that folder and try again",
		}
	}
	return folder, nil
}

// newest is the newest version that is no preview, if there is one.
func newest(versions []string) string {
	return slices.MaxFunc(versions, func(a, b string) int {
		if x, y := parseRelease(a).pre == "", parseRelease(b).pre == ""; x != y {
			if x {
				return 1
			}
			return -1
		}
		return compareReleases(a, b)
	})
}

// find asks which package has the version; the newest one if it is empty.
func (n *npm) find(ctx context.Context, p *published, version string) (name, found string, err error) {
	var all []string
	for _, name := range p.packages {
		versions, err := n.versions(ctx, name)
		if err != nil {
			return "", "", err
		}
		if version == "" && len(versions) > 0 {
			return name, newest(versions), nil
		}
		if slices.Contains(versions, version) {
			return name, version, nil
		}
		all = append(all, versions...)
	}
	if len(all) == 0 {
		return "", "", &Error{
			Problem: "npm's registry does not have " + strings.Join(p.packages, " nor "),
			Cure:    "see «npm config get registry»",
		}
	}
	return "", "", &Error{
		Problem: "there is no " + p.at(version),
		Cure:    "the nearest releases are " + p.list(nearest(version, all)),
	}
}
