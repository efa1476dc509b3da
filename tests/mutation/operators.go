package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// visit puts mutants at a node; it reports whether there may be more below.
func (w *weave) visit(node ast.Node) bool {
	if node == nil || w.skipped[node] {
		return false
	}
	if e, ok := node.(ast.Expr); ok {
		return w.expression(e)
	}
	switch n := node.(type) {
	case *ast.DeclStmt:
		declaration, ok := n.Decl.(*ast.GenDecl)
		return ok && declaration.Tok == token.VAR
	case *ast.BlockStmt:
		w.statements(n.List)
	case *ast.CaseClause:
		w.statements(n.Body)
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.ForStmt:
		w.condition(n.Cond)
	case *ast.SwitchStmt:
		w.cases(n)
	case *ast.ReturnStmt:
		w.returned(n)
	}
	return true
}

// expression does the same for an expression.
func (w *weave) expression(e ast.Expr) bool {
	known := w.info.Types[e]
	if known.IsType() {
		return false
	}
	if known.Value != nil {
		w.constant(e, known)
		return false
	}
	switch n := e.(type) {
	case *ast.FuncLit:
		w.body(n.Body, w.info.TypeOf(n))
		return false
	case *ast.CompositeLit:
		w.literal(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			w.condition(n.X)
		}
	case *ast.BinaryExpr:
		w.binary(n)
	}
	return true
}

// statements removes, one at a time, what a function can do without.
func (w *weave) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || isBlank(s) {
				continue
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "panic" {
				continue // the compiler may count on it
			}
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE && s.Tok != token.BREAK {
				continue
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		id := w.add("%s removed", w.file.short(statement))
		w.file.wrap(statement, fmt.Sprintf("if !mutantOn(%d) { ", id), " }")
	}
}

func isBlank(s *ast.AssignStmt) bool {
	name, ok := s.Lhs[0].(*ast.Ident)
	return ok && name.Name == "_" && len(s.Lhs) == 1
}

func isBool(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// condition negates what is neither a comparison nor made of other conditions: those are
// met further down.
func (w *weave) condition(e ast.Expr) {
	if e == nil || !isBool(w.info.TypeOf(e)) || w.info.Types[e].Value != nil {
		return
	}
	switch ast.Unparen(e).(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		id := w.add("%s negated", w.file.short(e))
		w.file.wrap(e, "((", fmt.Sprintf(") != mutantOn(%d))", id))
	}
}

// cases are the conditions of a switch without a value.
func (w *weave) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List { // the parser's promise
			w.condition(e)
		}
	}
}

// returned makes a function return nothing instead of something.
func (w *weave) returned(n *ast.ReturnStmt) {
	results := w.results[len(w.results)-1]
	if results.Len() != len(n.Results) {
		return // bare, or all the results of a call
	}
	for i, e := range n.Results {
		w.condition(e)
		w.zeroed(e, results.At(i).Type())
	}
}

// literal leaves out, one at a time, what a literal fills in.
func (w *weave) literal(n *ast.CompositeLit) {
	var element types.Type
	keysAreIndices := false
	switch t := w.info.TypeOf(n).Underlying().(type) {
	case *types.Map:
		element = t.Elem()
	case *types.Slice:
		element, keysAreIndices = t.Elem(), true
	case *types.Array:
		element, keysAreIndices = t.Elem(), true
	}
	for _, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		of := element
		if of == nil { // a struct's field
			of = w.info.Uses[pair.Key.(*ast.Ident)].Type()
			w.skipped[pair.Key] = true
		}
		if keysAreIndices {
			w.skipped[pair.Key] = true
		}
		w.condition(pair.Value)
		w.zeroed(pair.Value, of)
	}
}

// zeroed replaces a value by the zero of its type. Constants have mutants of their own.
func (w *weave) zeroed(e ast.Expr, of types.Type) {
	known := w.info.Types[e]
	if known.Value != nil || known.IsNil() || isBool(of) {
		return
	}
	switch n := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return
	case *ast.CompositeLit:
		if n.Type == nil || len(n.Elts) == 0 {
			return // it cannot stand alone, or is the zero already
		}
	}
	if name, ok := w.typeName(of); ok {
		id := w.add("%s zeroed", w.file.short(e))
		w.file.wrap(e, fmt.Sprintf("mutantZero[%s](%d, ", name, id), ")")
	}
}

// binary mutates comparisons, logic and arithmetic.
func (w *weave) binary(n *ast.BinaryExpr) {
	left, right, whole := w.file.slice(n.X), w.file.slice(n.Y), w.file.short(n)
	switch n.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !isBool(w.info.TypeOf(n)) {
			return
		}
		id := w.add("%s negated", whole)
		w.file.wrap(n, "((", fmt.Sprintf(") != mutantOn(%d))", id))
		switch n.Op {
		case token.LSS, token.GTR:
			id := w.add("%s with `%s=`", whole, n.Op)
			w.file.wrap(n, "(", fmt.Sprintf(" || mutantOn(%d) && (%s) == (%s))", id, left, right))
		case token.LEQ, token.GEQ:
			id := w.add("%s without the equals sign", whole)
			w.file.wrap(n, "(", fmt.Sprintf(" && !(mutantOn(%d) && (%s) == (%s)))", id, left, right))
		}
	case token.LAND:
		id := w.add("%s with `||`", whole)
		w.file.wrap(n, "(", fmt.Sprintf(" || mutantOn(%d) && (%s || %s))", id, left, right))
		w.condition(n.X) // after the whole: what is wrapped first is the outermost
		w.condition(n.Y)
	case token.LOR:
		id := w.add("%s with `&&`", whole)
		w.file.wrap(n, "((", fmt.Sprintf(") && (!mutantOn(%d) || (%s) && (%s)))", id, left, right))
		w.condition(n.X) // after the whole: what is wrapped first is the outermost
		w.condition(n.Y)
	default:
		w.arithmetic(n, whole)
	}
}

// arithmetic swaps an operator for its opposite.
func (w *weave) arithmetic(n *ast.BinaryExpr, whole string) {
	opposites := map[token.Token][2]string{
		token.ADD: {"mutantAdd", "-"}, token.SUB: {"mutantSub", "+"}, token.MUL: {"mutantMul", "/"}, token.QUO: {"mutantQuo", "*"},
	}
	opposite, ok := opposites[n.Op]
	if name, writable := w.typeName(w.info.TypeOf(n)); ok && writable && isNumber(w.info.TypeOf(n)) {
		id := w.add("%s with `%s`", whole, opposite[1])
		w.file.wrap(n, fmt.Sprintf("%s[%s](%d, ", opposite[0], name, id), ")")
		w.file.replace(n.OpPos, n.Op.String(), ",")
	}
}

func isNumber(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

// constant changes a constant that the package itself wrote down: a number by one, either
// way, a text to none, a truth to its opposite.
func (w *weave) constant(e ast.Expr, known types.TypeAndValue) {
	name, ok := w.typeName(types.Default(known.Type)) // a shift's count has no type
	if !ok || !w.ours(e) {
		return
	}
	switch {
	case isBool(known.Type):
		id := w.add("%s negated", w.file.short(e))
		w.file.wrap(e, "(", fmt.Sprintf(" != mutantOn(%d))", id))
	case isNumber(known.Type):
		id := w.add("%s plus 1", w.file.short(e))
		w.add("%s minus 1", w.file.short(e))
		w.file.wrap(e, fmt.Sprintf("mutantNumber[%s](%d, ", name, id), ")")
	case known.Value.Kind() == constant.String && constant.StringVal(known.Value) != "":
		if _, basic := known.Type.Underlying().(*types.Basic); basic {
			id := w.add("%s emptied", w.file.short(e))
			w.file.wrap(e, fmt.Sprintf("mutantText[%s](%d, ", name, id), ")")
		}
	}
}

// ours reports whether a constant expression holds a literal or a constant of the package.
func (w *weave) ours(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BasicLit:
			found = true
		case *ast.Ident:
			object := w.info.Uses[n]
			found = found || object != nil && (object.Pkg() == w.own || n.Name == "true" || n.Name == "false")
		}
		return !found
	})
	return found
}
