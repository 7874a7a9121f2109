package project

import "slices"

// language is what projects of one language are made of.
type language struct {
	Name      string // as it is written after --lang
	Language  string // as people write it
	Build     string // command line; empty if there is nothing to build
	Command   string
	Needs     string
	Adapter   string // the file that names the author's own loop
	Files     []file
	Hints     string
	Ignore    string // lines of .gitignore
	Setup     string // action that installs the language in CI; empty if it is there
	SetupWith string // what that action is told
}

// file is one file of a project, or several if Name ends in a slash.
type file struct {
	Name  string // in the project
	From  string // in adapters.Projects; a pattern if there are several
	About string // what the README says of it; nothing if it is empty
}

// languages in the order in which they are named to people.
var languages = []language{
	{
		Name: "ts", Language: "TypeScript or JavaScript", Command: "node adapter.mjs", Adapter: "adapter.mjs",
		Needs: "Node.js 20 or newer, and no package",
		Files: []file{
			{"adapter.mjs", "js/example/adapter.mjs", "joins the loop; `YOUR LOOP` marks what to change"},
			{"loop.mjs", "js/example/loop.mjs", "the toy loop"},
			{"pi-conform/", "js/*.mts", "the adapter library, with its types (`index.d.mts`)"},
			{"pi-conform/", "js/*.mjs", ""},
			{"package.json", "js/example/package.json", "says that these are modules"},
			{"tsconfig.json", "js/example/tsconfig.json", "lets `tsc` check the types, also of the `.mjs` files"},
		},
		Hints: "The files are JavaScript whose types the TypeScript compiler checks, so that nothing has to be built. If your loop has\n" +
			"to be, add its build command to `pi-conform.yaml` and import what comes of it. From Node.js 22.18 on `adapter.mjs` may\n" +
			"import `.ts` files as they are, and may become one.",
		Ignore: "node_modules/\n", Setup: "actions/setup-node@v4", SetupWith: "node-version: 22",
	},
	{
		Name: "python", Language: "Python with asyncio", Command: "python3 adapter.py", Adapter: "adapter.py",
		Needs: "Python 3.9 or newer, and no package",
		Files: []file{
			{"adapter.py", "python/example/adapter.py", "joins the loop; `YOUR LOOP` marks what to change"},
			{"loop.py", "python/example/loop.py", "the toy loop"},
			{"pi_conform_adapter.py", "python/pi_conform_adapter.py", "the adapter library"},
		},
		Hints: "A loop that needs a virtual environment is started with that environment's interpreter: write its path in\n" +
			"`pi-conform.yaml`. The loop must wait for nothing but the surroundings: no timers, threads or subprocesses in a case.",
		Ignore: "__pycache__/\n", Setup: "actions/setup-python@v5", SetupWith: `python-version: "3.12"`,
	},
	{
		Name: "go", Language: "Go", Build: "go build -mod=mod -o adapter .", Command: "./adapter", Adapter: "main.go",
		Needs: "Go 1.26 or newer",
		Files: []file{
			{"main.go", "go/example/main.go", "joins the loop; `YOUR LOOP` marks what to change"},
			{"loop.go", "go/example/loop.go", "the toy loop"},
			{"go.mod", "go/example/go.mod.tmpl", "requires pi-conform, for its packages `adapters/go` and `harness`"},
		},
		Hints: "Your loop keeps its goroutines, channels, timers and contexts: each case runs in a `testing/synctest` bubble. Package\n" +
			"`harness/bubble` does the same within a Go test, without a process.",
		Ignore: "/adapter\n",
	},
	{
		Name: "rust", Language: "Rust", Build: "cargo build --quiet", Command: "target/debug/adapter", Adapter: "src/main.rs",
		Needs: "Rust 1.85 or newer, and no crate",
		Files: []file{
			{"src/main.rs", "rust/example/src/main.rs", "joins the loop; `YOUR LOOP` marks what to change"},
			{"src/toy_loop.rs", "rust/example/src/toy_loop.rs", "the toy loop"},
			{"src/pi_conform_adapter.rs", "rust/pi_conform_adapter.rs", "the adapter library"},
			{"Cargo.toml", "rust/example/Cargo.toml", "the package"},
		},
		Hints: "The library runs futures on one thread (`Tasks`). Channels and locks of async crates work there; what needs a runtime of\n" +
			"its own, such as timers or `tokio::spawn`, does not: let your loop take how it spawns as a parameter.",
		Ignore: "target/\n",
	},
	{
		Name: "java", Language: "Java", Build: "javac -d build Adapter.java ToyLoop.java PiConformAdapter.java",
		Command: "java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp build Adapter", Adapter: "Adapter.java",
		Needs: "JDK 17 or newer, and no library",
		Files: []file{
			{"Adapter.java", "java/example/Adapter.java", "joins the loop; `YOUR LOOP` marks what to change"},
			{"ToyLoop.java", "java/example/ToyLoop.java", "the toy loop"},
			{"PiConformAdapter.java", "java/PiConformAdapter.java", "the adapter library"},
		},
		Hints: "The loop runs on the library's `Tasks`: threads of which one goes on at a time. If your loop takes an `Executor`, give it\n" +
			"that one, and let it wait for futures by `Tasks.await`. Build with Maven or Gradle by writing so in `pi-conform.yaml`.",
		Ignore: "build/\n", Setup: "actions/setup-java@v4", SetupWith: "distribution: temurin, java-version: 17",
	},
}

// Languages are the names of the languages that projects can be made for.
func Languages() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.Name)
	}
	return names
}

func lookup(name string) (language, bool) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.Name == name })
	if i < 0 {
		return language{}, false
	}
	return languages[i], true
}
