package archtest

import (
	"slices"
	"strings"
)

// module is how the paths of this repository's packages begin.
const module = "github.com/heliostat-dev/heliostat/"

// folders finds pairs of folders of the product that import each other. Packages of such a pair may form no ring, and yet nobody can
// read, move or give away one folder without the other.
func folders(files []*File) []Violation {
	imports := map[[2]string]Violation{}
	for _, f := range files {
		if !f.Product() {
			continue
		}
		for _, spec := range f.AST.Imports {
			path, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			from, to := folderOf(f.Dir()), folderOf(path)
			if is && from != to {
				imports[[2]string{from, to}] = f.found(spec, "%s imports %s, which imports %s: move what both need to a third folder", from, to, from)
			}
		}
	}
	var all []Violation
	for pair, violation := range imports {
		if _, is := imports[[2]string{pair[1], pair[0]}]; is {
			all = append(all, violation)
		}
	}
	slices.SortFunc(all, func(a, b Violation) int { return strings.Compare(a.Place, b.Place) })
	return all
}

// folderOf returns the folder of a package: the first of its path, and below ray-operator, which has several, the second too.
func folderOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	if parts[0] == "ray-operator" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
