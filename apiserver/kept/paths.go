package kept

import (
	"net/url"
	"strings"
)

// Escape returns a path as it stands in an address: other bytes than letters, digits and -._~/ are %XX.
func Escape(path string) string {
	const hex = "0123456789ABCDEF"
	var text strings.Builder
	for i := range len(path) {
		b := path[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-._~/", b) >= 0:
			text.WriteByte(b)
		default:
			text.WriteByte('%')
			text.WriteByte(hex[b>>4])
			text.WriteByte(hex[b&15])
		}
	}
	return text.String()
}

// Unescape returns the path of which a text is a spelling in an address, and whether it is one.
func Unescape(text string) (path string, is bool) {
	path, err := url.PathUnescape(text)
	return path, err == nil && path != "" && len(path) <= maxPath
}

// maxPath is how many bytes the path of a file has at most.
const maxPath = 512

// Matches reports whether a path is one of a pattern, in which an asterisk is any text without a slash.
func Matches(pattern, path string) bool {
	begin, rest, hasAsterisk := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, begin) {
		return false
	}
	path = path[len(begin):]
	if !hasAsterisk {
		return path == ""
	}
	// Each further piece is taken where it comes first: what is between has no slash, or no later place would do either.
	for {
		piece, more, hasMore := strings.Cut(rest, "*")
		if !hasMore {
			at := len(path) - len(piece)
			return at >= 0 && path[at:] == piece && !strings.Contains(path[:at], "/")
		}
		at := strings.Index(path, piece)
		if at < 0 || strings.Contains(path[:at], "/") {
			return false
		}
		path, rest = path[at+len(piece):], more
	}
}

// begins returns what to ask archivers for, for the files of a place that match patterns: each up to its first asterisk.
func begins(place Place, patterns []string) []string {
	if len(patterns) == 0 || len(place.Paths) > 0 {
		return place.Paths
	}
	var all []string
	for _, one := range patterns {
		begin, _, hasAsterisk := strings.Cut(one, "*")
		if hasAsterisk {
			begin += "*"
		}
		all = append(all, begin)
	}
	return all
}

// isChosen reports whether a path matches one of the patterns; none is all.
func isChosen(patterns []string, path string) bool {
	for _, one := range patterns {
		if Matches(one, path) {
			return true
		}
	}
	return len(patterns) == 0
}
