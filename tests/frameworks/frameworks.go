// Package frameworks holds programs that gangs run: distributed programs in the form of each framework's own tutorial.
//
// In goes nothing; out come the programs by the names of their files. They must never name Ray or Heliostat: what they
// show is that such programs run unmodified.
package frameworks

import "embed"

//go:embed *.py
var files embed.FS

// Programs returns the text of each program by the name of its file.
func Programs() (map[string]string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		programs[entry.Name()] = string(text)
	}
	return programs, nil
}
