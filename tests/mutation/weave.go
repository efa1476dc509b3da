package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Mutant is one small change of a package.
type Mutant struct {
	// ID chooses it; counted from 1.
	ID int
	// Function is where it is: Name, Type.Name, or the name of a package's variable.
	Function string
	// Change says what it does, in words that hold no line number, so that they stay
	// the same while the file around it changes.
	Change string
}

// Key names a mutant within its package.
func (m Mutant) Key() string { return m.Function + ": " + m.Change }

// source is the text of one file with what must be put into it.
type source struct {
	path  string
	text  string
	base  int // of the file's positions
	names map[*types.Package]string
	edits []edit
}

// edit puts text in at an offset, instead of the next cut bytes.
type edit struct {
	at, cut int
	text    string
	closes  bool
	order   int
}

// weave puts mutants into the files of a package.
type weave struct {
	own      *types.Package
	info     *types.Info
	mutants  []Mutant
	file     *source
	function string
	results  []*types.Tuple // of the functions around, innermost last
	skipped  map[ast.Node]bool
	seen     map[string]int
}

func (s *source) slice(node ast.Node) string {
	return s.text[int(node.Pos())-s.base : int(node.End())-s.base]
}

// short is the text of a node on one line, cut to what a table can hold.
func (s *source) short(node ast.Node) string {
	words := []rune(strings.ReplaceAll(strings.Join(strings.Fields(s.slice(node)), " "), "`", "'"))
	if len(words) > 70 {
		words = append(words[:69], '…')
	}
	return "`" + string(words) + "`"
}

// wrap puts a node between two texts; of several wraps the first is the outermost.
func (s *source) wrap(node ast.Node, before, after string) {
	s.edits = append(s.edits,
		edit{at: int(node.Pos()) - s.base, text: before, order: len(s.edits)},
		edit{at: int(node.End()) - s.base, text: after, order: -len(s.edits), closes: true})
}

func (s *source) replace(at token.Pos, old, with string) {
	s.edits = append(s.edits, edit{at: int(at) - s.base, cut: len(old), text: with, order: len(s.edits)})
}

// woven is the text with all edits. At one offset, what ends comes before what begins.
func (s *source) woven() string {
	slices.SortStableFunc(s.edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		if a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		return a.order - b.order
	})
	var b strings.Builder
	from := 0
	for _, e := range s.edits {
		b.WriteString(s.text[from:e.at] + e.text)
		from = e.at + e.cut
	}
	return b.String() + s.text[from:]
}

// add gives a mutant an ID, and its change a number where it is not the first of its kind
// in the function.
func (w *weave) add(format string, values ...any) int {
	m := Mutant{ID: len(w.mutants) + 1, Function: w.function, Change: fmt.Sprintf(format, values...)}
	w.seen[m.Key()]++
	if n := w.seen[m.Key()]; n > 1 {
		m.Change += fmt.Sprintf(" (%d)", n)
	}
	w.mutants = append(w.mutants, m)
	return m.ID
}

// weaveFile puts mutants into one file.
func (w *weave) weaveFile(file *ast.File) {
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			w.function = functionName(d)
			if d.Body != nil {
				w.body(d.Body, w.info.Defs[d.Name].Type())
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				variable := spec.(*ast.ValueSpec) // the parser's promise
				w.function = variable.Names[0].Name
				for _, value := range variable.Values {
					ast.Inspect(value, w.visit)
				}
			}
		}
	}
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := types.ExprString(d.Recv.List[0].Type)
	return strings.TrimPrefix(receiver, "*") + "." + d.Name.Name
}

// body visits a function's body, knowing what the function returns.
func (w *weave) body(body *ast.BlockStmt, function types.Type) {
	w.results = append(w.results, function.(*types.Signature).Results())
	ast.Inspect(body, w.visit)
	w.results = w.results[:len(w.results)-1]
}

// typeName is how the file at hand writes a type; false where it cannot.
func (w *weave) typeName(t types.Type) (string, bool) {
	writable := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p == w.own {
			return ""
		}
		imported, ok := w.file.names[p]
		writable = writable && ok
		return imported
	})
	return name, writable
}
