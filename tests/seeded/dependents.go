package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/heliostat-dev/heliostat"

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir                                               string
	Imports, TestImports, XTestImports, TestGoFiles, XTestGoFiles []string
}

func (l listed) hasTests() bool { return len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 }

// hasPoints reports whether the tests play stories with points of disturbance. Those of testkit itself test the points.
func (l listed) hasPoints() bool {
	return l.ImportPath != module+"/ray-operator/internal/testkit" &&
		slices.Contains(slices.Concat(l.TestImports, l.XTestImports), module+"/ray-operator/internal/testkit")
}

// imports reports whether the product's part of a package imports another one.
func (l listed) imports(path string) bool { return slices.Contains(l.Imports, path) }

// uses reports whether the package or its tests import another one.
func (l listed) uses(path string) bool {
	return slices.Contains(slices.Concat(l.Imports, l.TestImports, l.XTestImports), path)
}

// dependents returns the packages with unit tests that a change of one can fail: the package
// itself first, then those that use it, then those that use these.
func dependents(ctx context.Context, root, changed string) ([]listed, error) {
	fields := "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles"
	text, err := output(ctx, root, "go", "list", fields, "./...")
	if err != nil {
		return nil, err
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(text)); decoder.More(); {
		var one listed
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, one)
	}
	return nearest(all, module+"/"+changed), nil
}

// nearest walks from a package to those that use it, level by level. What only the tests of a
// package import is not passed on to those that import the package.
func nearest(all []listed, changed string) []listed {
	isChanged := func(one listed) bool { return one.ImportPath == changed }
	var found []listed
	if at := slices.IndexFunc(all, isChanged); at >= 0 && isUnit(all[at]) {
		found = append(found, all[at])
	}
	reached, tested := map[string]bool{changed: true}, map[string]bool{changed: true}
	for level := []string{changed}; len(level) > 0; {
		var next []string
		for _, one := range all {
			if !tested[one.ImportPath] && isUnit(one) && slices.ContainsFunc(level, one.uses) {
				tested[one.ImportPath] = true
				found = append(found, one)
			}
			if !reached[one.ImportPath] && slices.ContainsFunc(level, one.imports) {
				reached[one.ImportPath] = true
				next = append(next, one.ImportPath)
			}
		}
		level = next
	}
	return found
}

// isUnit reports whether a package has tests that need no Kubernetes and test the product.
func isUnit(one listed) bool {
	others := []string{"integration", "e2e", "bench", "seeded"}
	return one.hasTests() && !slices.ContainsFunc(others, func(other string) bool {
		return strings.HasPrefix(one.ImportPath+"/", module+"/tests/"+other+"/")
	})
}
