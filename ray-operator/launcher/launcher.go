// Package launcher packs the program that runs a gang on a Ray cluster, and reads what that program reports.
//
// In: a Description, in which every default is written out; and reports, as bytes. Out: an archive with the launcher's
// Python files and the description, under a name that follows from its content; and a Report whose numbers and texts are
// bounded.
//
// It must never take a report for more than a claim: any code on the cluster can write one. It must never pack a value
// of a Secret, and never import Kubernetes, a client, a clock or a file system.
package launcher

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// Module is the Python module that a driver runs: python -m heliostat_gang.
	Module = "heliostat_gang"
	// MaxDescription is how many bytes a description may have as JSON. A gang that the rules accept never has as many: they allow
	// 256 KiB of text beside 64 KiB of variables, of which JSON makes six times as much at most.
	MaxDescription = 4 << 20
	// version is that of the descriptions that are written.
	version = 1
	// digits is how many hexadecimal digits of its digest name a package.
	digits = 32
)

//go:embed heliostat_gang/*.py
var files embed.FS

// made is the time of each file in an archive: the first that a ZIP archive can have.
var made = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Package returns an archive that Ray runs as a Python module, and its name. Both follow from the description and the
// launcher's files alone: the same gang always has the same package. It fails for a description of more than
// MaxDescription bytes.
func Package(d Description) (name string, archive []byte, err error) {
	description, err := d.marshal()
	if err != nil {
		return "", nil, fmt.Errorf("pack the launcher of gang %s: %w", d.Submission, err)
	}
	if len(description) > MaxDescription {
		return "", nil, fmt.Errorf("pack the launcher of gang %s: its description has %d bytes, more than %d",
			d.Submission, len(description), MaxDescription)
	}
	archive, err = pack(description)
	if err != nil {
		return "", nil, fmt.Errorf("pack the launcher of gang %s: %w", d.Submission, err)
	}
	digest := sha256.Sum256(archive)
	return "heliostat-gang-" + hex.EncodeToString(digest[:])[:digits] + ".zip", archive, nil
}

// marshal returns the description as JSON. A list or a map that is empty is written as such, and never as null.
func (d Description) marshal() ([]byte, error) {
	return json.Marshal(struct {
		Version int `json:"version"`
		Description
	}{version, d.written()})
}

// code is an archive of the launcher's files, in the order of their names. They are compressed once, as that takes longer
// than all else.
var code = sync.OnceValues(func() (*zip.Reader, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	entries, err := files.ReadDir(Module) // which are sorted
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := files.ReadFile(Module + "/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if err := add(archive, entry.Name(), text); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
})

// pack returns an archive of the launcher's files and a description.
func pack(description []byte) ([]byte, error) {
	launcher, err := code()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, file := range launcher.File {
		if err := archive.Copy(file); err != nil {
			return nil, err
		}
	}
	if err := add(archive, "description.json", description); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// add adds a file of the module to an archive.
func add(archive *zip.Writer, name string, content []byte) error {
	header := &zip.FileHeader{Name: Module + "/" + name, Method: zip.Deflate, Modified: made}
	header.SetMode(0o644)
	to, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = to.Write(content)
	return err
}
