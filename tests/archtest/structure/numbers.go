package main

import (
	"fmt"
	"go/ast"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/archtest"
)

// numbers are what is measured of a package, or of several.
type numbers struct {
	files, lines        int
	largest             int
	owner               string
	methods, oneWord    int
	tied, mutual, pairs int
	repeated, retired   int
}

func (n *numbers) add(other numbers) {
	n.files, n.lines = n.files+other.files, n.lines+other.lines
	if other.largest > n.largest {
		n.largest, n.owner = other.largest, other.owner
	}
	n.methods, n.oneWord = n.methods+other.methods, n.oneWord+other.oneWord
	n.tied, n.mutual, n.pairs = n.tied+other.tied, n.mutual+other.mutual, n.pairs+other.pairs
	n.repeated, n.retired = n.repeated+other.repeated, n.retired+other.retired
}

func (n *numbers) print(out io.Writer, name string) {
	fmt.Fprintf(out, "| `%s` | %d | %d | %d `%s` | %d | %d | %d of %d | %d | %d | %d |\n",
		name, n.files, n.lines, n.largest, n.owner, n.methods, n.oneWord, n.tied, n.pairs, n.mutual, n.repeated, n.retired)
}

// measure measures the files of one package.
func measure(files []*archtest.File, retired []archtest.Retired) (numbers, error) {
	n := numbers{files: len(files), repeated: repeatedLines(files)}
	owners := map[string]int{}
	for _, file := range files {
		n.lines += len(codeLines(file.Text))
		for method, owner := range file.Methods() {
			owners[owner]++
			if name := method.Name.Name; name == strings.ToLower(name) {
				n.oneWord++
			}
		}
		found, err := archtest.RetiredIn(file.Path, file.Text, retired)
		if err != nil {
			return n, err
		}
		n.retired += len(found)
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		n.methods += owners[owner]
		if owners[owner] > n.largest {
			n.largest, n.owner = owners[owner], owner
		}
	}
	n.tied, n.mutual, n.pairs = countTies(files)
	return n, nil
}

// codeLines returns the lines of a file that are neither blank nor a comment, without the blanks around them.
func codeLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

// countTies counts the pairs of a package's files of which one uses a function or method of the other, and those where each
// does. Names that are declared more than once are left out, as the parser does not say which of them is meant.
func countTies(files []*archtest.File) (tied, mutual, pairs int) {
	declared, count := map[string]int{}, map[string]int{}
	for i, file := range files {
		for _, declaration := range file.AST.Decls {
			if function, is := declaration.(*ast.FuncDecl); is {
				declared[function.Name.Name] = i
				count[function.Name.Name]++
			}
		}
	}
	uses := map[[2]int]bool{}
	for i, file := range files {
		for _, declaration := range file.AST.Decls {
			ast.Inspect(declaration, func(node ast.Node) bool {
				if name, is := node.(*ast.Ident); is && count[name.Name] == 1 {
					uses[[2]int{i, declared[name.Name]}] = true
				}
				return true
			})
		}
	}
	for i := range files {
		for j := range i {
			pairs++
			one, other := uses[[2]int{i, j}], uses[[2]int{j, i}]
			if one || other {
				tied++
			}
			if one && other {
				mutual++
			}
		}
	}
	return tied, mutual, pairs
}

// runOf is how many lines of code must be the same to count as repeated.
const runOf = 6

// repeatedLines counts the lines of code that are in a run that occurs again. Imports do not count.
func repeatedLines(files []*archtest.File) int {
	type place struct{ file, line int }
	runs := map[string][]place{}
	for i, file := range files {
		lines := codeLines(afterImports(file))
		for at := 0; at+runOf <= len(lines); at++ {
			run := strings.Join(lines[at:at+runOf], "\n")
			runs[run] = append(runs[run], place{i, at})
		}
	}
	repeated := map[place]bool{}
	for _, places := range runs {
		for _, at := range places {
			for line := range runOf {
				if len(places) > 1 {
					repeated[place{at.file, at.line + line}] = true
				}
			}
		}
	}
	return len(repeated)
}

// afterImports returns the text of a file behind its imports.
func afterImports(file *archtest.File) string {
	if last := len(file.AST.Imports); last > 0 {
		end := int(file.AST.Imports[last-1].End() - file.AST.FileStart)
		return file.Text[end:]
	}
	return file.Text
}
