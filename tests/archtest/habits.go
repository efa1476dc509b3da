package archtest

import (
	"go/ast"
	"regexp"
	"strings"
)

func habits() []Rule {
	return []Rule{each("no-leftover", leftovers), each("one-yaml-reader", yamlReads)}
}

// yamlReader is the package that reads YAML for the product: it bounds what a text becomes before it writes anchors out.
const yamlReader = "ray-operator/yaml"

// yamlLibrary is how the path of a library that reads YAML begins or ends.
var yamlLibrary = regexp.MustCompile(`^(sigs\.k8s\.io/yaml|go\.yaml\.in/yaml|gopkg\.in/yaml|github\.com/goccy/go-yaml|` +
	`k8s\.io/apimachinery/pkg/(util/yaml|runtime/serializer/yaml))\b`)

// yamlWrites are what the product may use of these libraries: what writes YAML, and the parts of a tree that was read.
var yamlWrites = regexp.MustCompile(`^(Marshal|JSONToYAML|NewEncoder|Node|Kind|[A-Za-z]+Node)$`)

// yamlReads finds uses of a library that may read YAML, in the product and outside of its one reader.
func yamlReads(f *File) []Violation {
	if !f.Product() || within(f.Path, yamlReader) {
		return nil
	}
	names := map[string]bool{}
	var all []Violation
	for _, spec := range f.AST.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if !yamlLibrary.MatchString(path) {
			continue
		}
		switch {
		case spec.Name == nil:
			names["yaml"] = true
		case spec.Name.Name == ".":
			all = append(all, f.found(spec, "%s is imported without a name: read YAML by %s", path, yamlReader))
		default:
			names[spec.Name.Name] = true
		}
	}
	ast.Inspect(f.AST, func(node ast.Node) bool {
		used, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if name, ok := used.X.(*ast.Ident); ok && names[name.Name] && !yamlWrites.MatchString(used.Sel.Name) {
			all = append(all, f.found(used, "%s.%s reads YAML without bounds: read it by %s", name.Name, used.Sel.Name, yamlReader))
		}
		return true
	})
	return all
}

// leftover words are put together so that this file does not hold them.
var leftover = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"}, "|") + `)\b`)

func leftovers(f *File) []Violation {
	var all []Violation
	for _, group := range f.AST.Comments {
		if word := leftover.FindString(group.Text()); word != "" {
			all = append(all, f.found(group, "%s in a comment: do it, or write an issue", word))
		}
	}
	return all
}

// homes are directories of people; user "ray" is that of Ray's images.
var homes = regexp.MustCompile(`/(home|Users)/([A-Za-z0-9._-]+)`)

// LocalPaths finds, in the text of any file, paths that exist on one machine only: those
// below somebody's home, and those below root, the checkout's own directory.
func LocalPaths(root, text string) []string {
	var found []string
	for _, match := range homes.FindAllStringSubmatch(text, -1) {
		if match[2] != "ray" {
			found = append(found, match[0])
		}
	}
	// A checkout that lies directly below / has too common a name to search for.
	if strings.Count(root, "/") > 1 && strings.Contains(text, root+"/") {
		found = append(found, root)
	}
	return found
}
