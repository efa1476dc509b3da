package service

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestStages_LeaveTheRecordAlone: each half of advance writes a copy, and the other stages read it.
func TestStages_LeaveTheRecordAlone(t *testing.T) {
	for name, build := range map[string]func(*testing.T) *situation{
		"serves": serves, "shares a cluster": shares, "has a gateway": led,
		"upgrades": func(t *testing.T) *situation { return upgrades(t, nil) },
		"has an upgrade to begin": func(t *testing.T) *situation {
			s := serves(t)
			s.service.Spec.ClusterTemplate.Spec.Image = "ray:new"
			return s
		},
		"is suspended": func(t *testing.T) *situation {
			s := upgrades(t, nil)
			s.service.Spec.Suspend = new(true)
			return s
		},
		"is deleted": func(t *testing.T) *situation {
			s := shares(t)
			s.service.Finalizers = []string{v1beta1.FinalizerServe}
			s.service.DeletionTimestamp = &metav1.Time{Time: at()}
			return s
		},
		"lost its cluster": func(t *testing.T) *situation {
			s := serves(t)
			delete(s.seen.Clusters, 1)
			return s
		},
	} {
		s := build(t)
		had := s.seen.Record.String()
		followed := follow(s.read())
		asked := followed.record.String()
		advanced := advance(assess(followed))
		if have := followed.record.String(); have != asked {
			t.Errorf("%s: assess and advance made\n%s of\n%s", name, have, asked)
		}
		written := advanced.record.String()
		report(provide(route(advanced)))
		if have := advanced.record.String(); have != written {
			t.Errorf("%s: a later stage made\n%s of\n%s", name, have, written)
		}
		if have := s.seen.Record.String(); have != had {
			t.Errorf("%s: the record that was seen became\n%s, and was\n%s", name, have, had)
		}
	}
}

// TestRecord_IsAssignedByAdvanceAlone, besides its parser and what restores a lost one.
func TestRecord_IsAssignedByAdvanceAlone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	written := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "record.go" {
			continue
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range assignments(parsed) {
			if strings.HasPrefix(file, "advance") {
				written++
			} else {
				t.Errorf("%s assigns a field of the record: advance does", positions.Position(place.Pos()))
			}
		}
	}
	if written < 30 {
		t.Errorf("only %d assignments were found", written)
	}
}

// assignments returns what is assigned in a file that is, by the name of the variable, a part of the record.
func assignments(file *ast.File) []ast.Expr {
	var all []ast.Expr
	ast.Inspect(file, func(node ast.Node) bool {
		var assigned []ast.Expr
		switch statement := node.(type) {
		case *ast.AssignStmt:
			assigned = statement.Lhs
		case *ast.IncDecStmt:
			assigned = []ast.Expr{statement.X}
		}
		for _, expression := range assigned {
			if isOfRecord(expression) {
				all = append(all, expression)
			}
		}
		return true
	})
	return all
}

// isOfRecord reports whether an expression selects something of a record, a version of it or a cluster that it retires.
func isOfRecord(expression ast.Expr) bool {
	for {
		selected, is := expression.(*ast.SelectorExpr)
		if !is {
			return false
		}
		name := ""
		switch of := selected.X.(type) {
		case *ast.Ident:
			name = of.Name
		case *ast.SelectorExpr:
			name = of.Sel.Name
		}
		if slices.Contains([]string{"record", "version", "active", "candidate", "retired", "shift"}, name) {
			return true
		}
		expression = selected.X
	}
}
