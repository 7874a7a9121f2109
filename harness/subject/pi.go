package subject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Options say where a subject comes from and how it is talked to.
type Options struct {
	// Adapters holds the adapter programs, in the folders js and pi.
	Adapters fs.FS
	// Progress gets a line now and then while something is fetched; nil means
	// nobody wants to know.
	Progress io.Writer
	Protocol protocol.Options
}

func (o *Options) progress() io.Writer {
	if o.Progress == nil {
		return io.Discard
	}
	return o.Progress
}

// Command is a subject that the user has a command for.
func Command(c protocol.Command, opts Options) *protocol.Process {
	return protocol.NewProcess(c, opts.Protocol)
}

// The npm packages that the loop was published as, the newer name first. No
// version was published under both.
var piPackages = []string{"@earendil-works/pi-agent-core", "@mariozechner/pi-agent-core"}

// PackageVariable tells the adapter in which folder the package is.
const PackageVariable = "PI_CONFORM_PACKAGE"

// Pi is a release of the npm loop, such as 0.84.3, or the newest one if version
// is empty. What is missing is fetched with npm; an [Error] says why that did
// not work, and what to do. Nothing is started yet.
func Pi(ctx context.Context, version string, opts Options) (*protocol.Process, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	folder, err := opts.piPackage(ctx, cache, version)
	if err != nil {
		return nil, err
	}
	node, err := opts.node(ctx, cache)
	if err != nil {
		return nil, err
	}
	adapters, err := writeAdapters(ctx, cache, opts.Adapters, "js", "pi")
	if err != nil {
		return nil, err
	}
	return Command(protocol.Command{
		Argv: []string{node, filepath.Join(adapters, "pi", "pi.mjs")},
		Env:  []string{PackageVariable + "=" + folder},
	}, opts), nil
}

// piPackage gives the folder of the installed package.
func (o *Options) piPackage(ctx context.Context, cache, version string) (string, error) {
	if version != "" && !releaseForm.MatchString(version) {
		return "", &Error{
			Problem: fmt.Sprintf("%q is no version", version),
			Cure:    "give a whole one, such as pi@0.84.3",
		}
	}
	if version != "" {
		if folder := installed(cache, version); folder != "" {
			return folder, nil
		}
	}
	folder, err := o.fetchPi(ctx, cache, version)
	if err == nil || ctx.Err() != nil {
		return folder, err
	}
	return o.makeDo(cache, version, err)
}

// makeDo uses the newest release that is there, if any would do.
func (o *Options) makeDo(cache, version string, err error) (string, error) {
	have := cached(cache)
	if version != "" || len(have) == 0 {
		return "", withInstalled(err, have)
	}
	newest := have[len(have)-1]
	fmt.Fprintf(o.progress(), "cannot ask npm for the newest release (%v); using pi@%s, the newest one installed\n", err, newest)
	return installed(cache, newest), nil
}

// withInstalled adds to an error which releases can be had all the same.
func withInstalled(err error, have []string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(have) == 0 {
		return err
	}
	cures := []string{"installed already: pi@" + strings.Join(have, ", pi@")}
	if e.Cure != "" {
		cures = append([]string{e.Cure}, cures...)
	}
	return &Error{Problem: e.Problem, Cure: strings.Join(cures, "; ")}
}

const piFolder = "pi-agent-core-"

func installDir(cache, version string) string {
	return filepath.Join(cache, "npm", piFolder+version)
}

// installed is the folder of the package of that version, if it is there.
func installed(cache, version string) string {
	for _, name := range piPackages {
		folder := filepath.Join(installDir(cache, version), "node_modules", filepath.FromSlash(name))
		if exists(filepath.Join(folder, "package.json")) {
			return folder
		}
	}
	return ""
}

// cached lists the releases that are there, oldest first.
func cached(cache string) []string {
	entries, _ := os.ReadDir(filepath.Join(cache, "npm")) // none if there is no folder
	var versions []string
	for _, e := range entries {
		version, ok := strings.CutPrefix(e.Name(), piFolder)
		if ok && installed(cache, version) != "" {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, compareReleases)
	return versions
}

func (o *Options) fetchPi(ctx context.Context, cache, version string) (string, error) {
	n, err := findNPM(o.progress())
	if err != nil {
		return "", err
	}
	name, version, err := n.findPi(ctx, version)
	if err != nil {
		return "", err
	}
	if folder := installed(cache, version); folder != "" {
		return folder, nil
	}
	if err := n.install(ctx, installDir(cache, version), name+"@"+version); err != nil {
		return "", err
	}
	folder := installed(cache, version)
	if folder == "" {
		return "", &Error{
			Problem: fmt.Sprintf("npm said that it installed %s@%s, but it is not in %s", name, version, installDir(cache, version)),
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

// findPi asks which package has the version; the newest one if it is empty.
func (n *npm) findPi(ctx context.Context, version string) (name, found string, err error) {
	var all []string
	for _, name := range piPackages {
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
			Problem: "npm's registry has neither " + strings.Join(piPackages, " nor "),
			Cure:    "see «npm config get registry»",
		}
	}
	return "", "", &Error{
		Problem: "there is no pi@" + version,
		Cure:    "the nearest releases are pi@" + strings.Join(nearest(version, all), ", pi@"),
	}
}
