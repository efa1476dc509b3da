package shape

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// The budgets. When one does not fit, the answer is a table, a type or a package.
const (
	maxFile       = 500
	maxFunction   = 60
	maxReconcile  = 40
	maxComplexity = 12
	maxParameters = 5
)

func budgets() []Rule {
	return []Rule{
		each("file-length", func(f *File) []Violation {
			if n := strings.Count(f.Text, "\n"); n > maxFile {
				return []Violation{f.found(f.AST, "the file has %d lines, at most %d fit: split it by concern", n, maxFile)}
			}
			return nil
		}),
		functions("function-length", func(f *File, function *ast.FuncDecl) []Violation {
			limit := maxFunction
			if function.Name.Name == "Reconcile" {
				limit = maxReconcile
			}
			if n := f.lines(function); n > limit {
				return []Violation{f.found(function, "%s has %d lines, at most %d fit: name its parts", function.Name.Name, n, limit)}
			}
			return nil
		}),
		functions("complexity", func(f *File, function *ast.FuncDecl) []Violation {
			if n := complexity(function); n > maxComplexity {
				return []Violation{f.found(function, "%s has %d paths, at most %d fit: use a table or name its parts", function.Name.Name, n, maxComplexity)}
			}
			return nil
		}),
		functions("parameters", func(f *File, function *ast.FuncDecl) []Violation {
			if n := function.Type.Params.NumFields(); n > maxParameters && !dictated(function) {
				return []Violation{f.found(function, "%s has %d parameters, at most %d fit: make a type of what belongs together", function.Name.Name, n, maxParameters)}
			}
			return nil
		}),
	}
}

// functions makes a rule of a check of single functions and methods.
func functions(name string, check func(f *File, function *ast.FuncDecl) []Violation) Rule {
	return each(name, func(f *File) []Violation {
		var all []Violation
		for _, declaration := range f.AST.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				all = append(all, check(f, function)...)
			}
		}
		return all
	})
}

// dictated tells whether a function's comment has a line "//shape:dictated WHERE": its
// parameters are those of an interface of a library, which WHERE names.
func dictated(function *ast.FuncDecl) bool {
	if function.Doc == nil {
		return false
	}
	return slices.ContainsFunc(function.Doc.List, func(line *ast.Comment) bool {
		where, ok := strings.CutPrefix(line.Text, "//shape:dictated ")
		return ok && strings.TrimSpace(where) != ""
	})
}

// complexity is McCabe's: the number of branches and one more, those of function
// literals included.
func complexity(function *ast.FuncDecl) int {
	count := 1
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			count++
		case *ast.CaseClause:
			count += min(1, len(node.List))
		case *ast.CommClause:
			if node.Comm != nil {
				count++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				count++
			}
		}
		return true
	})
	return count
}
