package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// maxMethods is how many methods a type has at most. One with more hides how its parts depend on each other.
const maxMethods = 25

// distinct are the packages that have no method named as a field.
var distinct = []string{internal + "cluster", internal + "job", internal + "reconcile", internal + "service"}

func methods() []Rule {
	return []Rule{
		{Name: "methods-of-a-type", Check: tooManyMethods}, {Name: "functions-over-an-object", Check: tooManyFunctions},
		{Name: "method-beside-field", Check: besideFields},
	}
}

// tooManyMethods finds types with too many methods.
func tooManyMethods(files []*File) []Violation {
	var all []Violation
	for owner, places := range countMethods(files) {
		if len(places) > maxMethods {
			places[0].Message = fmt.Sprintf("%s has %d methods, at most %d fit: split it by concern, or take what they read as arguments", owner, len(places), maxMethods)
			all = append(all, places[0])
		}
	}
	return all
}

// countMethods returns where the methods of each type of the product are, by directory and type.
func countMethods(files []*File) map[string][]Violation {
	all := map[string][]Violation{}
	for _, f := range files {
		if !f.Product() {
			continue
		}
		for method, owner := range f.Methods() {
			all[f.Dir()+"."+owner] = append(all[f.Dir()+"."+owner], f.found(method, ""))
		}
	}
	return all
}

// besideFields finds methods whose name is that of a field of their type but for its case.
func besideFields(files []*File) []Violation {
	fields := map[string]bool{}
	for _, f := range product(files) {
		ast.Inspect(f.AST, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						fields[spec.Name.Name+"."+strings.ToLower(name.Name)] = true
					}
				}
			}
			return false
		})
	}
	var all []Violation
	for _, f := range product(files) {
		for method, owner := range f.Methods() {
			if name := method.Name.Name; fields[owner+"."+strings.ToLower(name)] {
				all = append(all, f.found(method, "%s.%s differs from a field by case alone: rename it", owner, name))
			}
		}
	}
	return all
}

// product returns the files of users' programs in the packages that keep to these rules.
func product(files []*File) []*File {
	return slices.DeleteFunc(slices.Clone(files), func(f *File) bool {
		return f.Test() || !slices.ContainsFunc(distinct, func(dir string) bool { return within(f.Path, dir) })
	})
}

// Methods returns the methods of a file, each with the name of its type.
func (f *File) Methods() map[*ast.FuncDecl]string {
	all := map[*ast.FuncDecl]string{}
	for _, declaration := range f.AST.Decls {
		method, ok := declaration.(*ast.FuncDecl)
		if !ok || method.Recv == nil {
			continue
		}
		owner := method.Recv.List[0].Type
		if pointer, ok := owner.(*ast.StarExpr); ok {
			owner = pointer.X
		}
		switch index := owner.(type) {
		case *ast.IndexExpr:
			owner = index.X
		case *ast.IndexListExpr:
			owner = index.X
		}
		all[method] = last(owner)
	}
	return all
}
