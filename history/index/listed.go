package index

import "github.com/heliostat-dev/heliostat/history/pack"

// IsListed reports whether a list has the size of a file: no more bytes of it are expected.
func (a *Archive) IsListed(key pack.FileKey) bool {
	return a.files[key] != nil && a.files[key].isListed
}
