package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runtimeText is compiled into the mutated package: how a mutant is chosen, and what the
// operators of that name do when theirs is.
const runtimeText = `package %s

import (
	"os"
	"strconv"
)

var mutantChosen, _ = strconv.Atoi(os.Getenv("` + chosen + `"))

func mutantOn(id int) bool { return id == mutantChosen }

type mutable interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantNumber[T mutable](id int, v T) T {
	switch mutantChosen {
	case id:
		return v + 1
	case id + 1:
		return v - 1
	}
	return v
}

func mutantText[T ~string](id int, v T) T {
	if mutantOn(id) {
		return ""
	}
	return v
}

func mutantZero[T any](id int, v T) T {
	if mutantOn(id) {
		var zero T
		return zero
	}
	return v
}

func mutantEither[T any](id int, plain, other func() T) T {
	if mutantOn(id) {
		return other()
	}
	return plain()
}

func mutantAdd[T mutable](id int, a, b T) T { return mutantEither(id, func() T { return a + b }, func() T { return a - b }) }
func mutantSub[T mutable](id int, a, b T) T { return mutantEither(id, func() T { return a - b }, func() T { return a + b }) }
func mutantMul[T mutable](id int, a, b T) T { return mutantEither(id, func() T { return a * b }, func() T { return a / b }) }
func mutantQuo[T mutable](id int, a, b T) T { return mutantEither(id, func() T { return a / b }, func() T { return a * b }) }
`

// chosen is the variable of the environment that chooses a mutant.
const chosen = "HELIOSTAT_MUTANT"

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Dir, Export               string
	GoFiles, Imports, TestImports, XTestImports []string
}

// usesRapid reports whether the tests draw their cases.
func (l listed) usesRapid() bool {
	return strings.Contains(strings.Join(append(l.TestImports, l.XTestImports...), "\n")+"\n", "pgregory.net/rapid\n")
}

// list reads a package; the files of compiled packages that it imports come with it.
func list(ctx context.Context, name string) (listed, map[string]string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-json=ImportPath,Name,Dir,Export,GoFiles,Imports,TestImports,XTestImports", "./"+name)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return listed{}, nil, fmt.Errorf("list the package: %w", err)
	}
	compiled := map[string]string{}
	var one listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		one = listed{}
		if err := decoder.Decode(&one); err != nil {
			return listed{}, nil, fmt.Errorf("read what go list says: %w", err)
		}
		compiled[one.ImportPath] = one.Export
	}
	return one, compiled, nil // dependencies come first, the package last
}

// mutate weaves mutants into a package's files, but for those that a program wrote.
func mutate(l listed, compiled map[string]string) ([]Mutant, []*source, error) {
	positions := token.NewFileSet()
	var files []*ast.File
	var sources []*source
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read the package: %w", err)
		}
		file, err := parser.ParseFile(positions, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, fmt.Errorf("parse the package: %w", err)
		}
		files = append(files, file)
		sources = append(sources, &source{path: path, text: string(text), base: int(file.FileStart)})
	}
	w := &weave{skipped: map[ast.Node]bool{}, seen: map[string]int{}}
	w.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
	own, err := config.Check(l.ImportPath, positions, files, w.info)
	if err != nil {
		return nil, nil, fmt.Errorf("check the package's types: %w", err)
	}
	w.own = own
	for i, file := range files {
		w.file = sources[i]
		w.file.names = map[*types.Package]string{}
		for _, spec := range file.Imports {
			if imported := w.info.PkgNameOf(spec); imported != nil {
				w.file.names[imported.Imported()] = imported.Name()
			}
		}
		if !ast.IsGenerated(file) {
			w.weaveFile(file)
		}
	}
	return w.mutants, sources, nil
}

// build compiles the package's tests with all mutants in them, into dir, and gives the
// test binary's path.
func build(ctx context.Context, l listed, sources []*source, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find a place for the build: %w", err)
	}
	overlay := map[string]string{filepath.Join(l.Dir, "mutants_overlay.go"): filepath.Join(dir, "mutants_overlay.go")}
	texts := map[string]string{filepath.Join(dir, "mutants_overlay.go"): fmt.Sprintf(runtimeText, l.Name)}
	for _, s := range sources {
		at := filepath.Join(dir, filepath.Base(s.path))
		overlay[s.path], texts[at] = at, s.woven()
	}
	description, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", fmt.Errorf("describe the overlay: %w", err)
	}
	texts[filepath.Join(dir, "overlay.json")] = string(description)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a place for the build: %w", err)
	}
	for at, text := range texts {
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("write the mutated package: %w", err)
		}
	}
	binary := filepath.Join(dir, "mutated.test")
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, l.ImportPath)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the mutated package: %w\n%s", err, out)
	}
	return binary, nil
}
