package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// Objects returns where the functions over each struct of the files of one package are, by type: its methods, and the functions
// whose first argument, after a context, is a pointer to it. A function over a pointer can change all of the struct, so it is
// a method with another spelling. A struct that embeds a pointer to another works over that one too: splitting an object by
// embedding it splits nothing.
func Objects(files []*File) map[string][]Violation {
	direct, embeds := map[string][]Violation{}, map[string][]string{}
	for _, f := range files {
		if !f.Product() {
			continue
		}
		for method, owner := range f.Methods() {
			direct[owner] = append(direct[owner], f.found(method, ""))
		}
		ast.Inspect(f.AST, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.TypeSpec:
				if structure, ok := node.Type.(*ast.StructType); ok {
					embeds[node.Name.Name] = embedded(structure)
				}
			case *ast.FuncDecl:
				if object := firstObject(node); object != "" {
					direct[object] = append(direct[object], f.found(node, ""))
				}
				return false
			}
			return true
		})
	}
	all := map[string][]Violation{}
	for name := range embeds {
		all[name] = slices.Clone(direct[name])
		for other := range embeds {
			if other != name && reaches(embeds, other, name, nil) {
				all[name] = append(all[name], direct[other]...)
			}
		}
	}
	return all
}

// embedded returns the types of a package to which a struct embeds a pointer.
func embedded(structure *ast.StructType) []string {
	var names []string
	for _, field := range structure.Fields.List {
		if name := pointee(field.Type); len(field.Names) == 0 && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// firstObject returns the type of this package to which a function's first argument is a pointer, empty if there is none.
func firstObject(function *ast.FuncDecl) string {
	if function.Recv != nil {
		return ""
	}
	for _, field := range function.Type.Params.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			continue
		}
		return pointee(field.Type)
	}
	return ""
}

// pointee returns the type of this package that a type points to, empty for any other type.
func pointee(expression ast.Expr) string {
	pointer, ok := expression.(*ast.StarExpr)
	if !ok {
		return ""
	}
	name, ok := pointer.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}

// reaches reports whether a struct embeds a pointer to another, itself or by what it embeds.
func reaches(embeds map[string][]string, from, to string, seen []string) bool {
	return slices.ContainsFunc(embeds[from], func(next string) bool {
		return next == to || !slices.Contains(seen, next) && reaches(embeds, next, to, append(seen, next))
	})
}

// tooManyFunctions finds objects over which too many functions work.
func tooManyFunctions(files []*File) []Violation {
	dir := files[0].Dir()
	if !slices.ContainsFunc(distinct, func(of string) bool { return within(dir, of) }) {
		return nil
	}
	var all []Violation
	objects := Objects(files)
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		if places := objects[object]; len(places) > maxMethods {
			places[0].Message = fmt.Sprintf("%d functions work over %s.%s, at most %d may: a step takes what it reads, and returns what it decides", len(places), dir, object, maxMethods)
			all = append(all, places[0])
		}
	}
	return all
}
