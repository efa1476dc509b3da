// Package sbom writes bills of materials of images.
//
// In goes an archive in the format of `docker save`; out comes an SPDX 2.3 document in JSON that names the image by its
// digest, and the Go modules, Debian packages and Python packages that are found in its files. The same archive gives the
// same bytes. It must never name what it did not find in the image itself.
package sbom

import (
	"archive/tar"
	"bufio"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const (
	// dpkgStatus is where Debian lists what is installed.
	dpkgStatus = "var/lib/dpkg/status"
	// mostText and mostProgram are how many bytes of a list and of a program are read.
	mostText, mostProgram = 16 << 20, 512 << 20
)

// part is what an image holds, by its package URL.
type part struct{ name, version, purl string }

// Write writes the document of an image that is in an archive.
func Write(name, archive string, to io.Writer) error {
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return fmt.Errorf("read image %s: %w", name, err)
	}
	parts, err := partsOf(image)
	if err != nil {
		return fmt.Errorf("read image %s: %w", name, err)
	}
	document, err := describe(name, image, parts)
	if err != nil {
		return fmt.Errorf("describe image %s: %w", name, err)
	}
	if err := json.Write(document, to, json.Indent("  ")); err != nil {
		return fmt.Errorf("write the document of image %s: %w", name, err)
	}
	return nil
}

// partsOf reads all layers. What a later one has of a file counts.
func partsOf(image v1.Image) ([]part, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	files := map[string][]part{}
	for _, layer := range layers {
		if err := readLayer(layer, files); err != nil {
			return nil, err
		}
	}
	all := map[string]part{}
	for _, parts := range files {
		for _, one := range parts {
			all[one.purl] = one
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b part) int { return strings.Compare(a.purl, b.purl) }), nil
}

func readLayer(layer v1.Layer, files map[string][]part) (err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	for entries := tar.NewReader(content); ; {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry.Typeflag != tar.TypeReg:
			continue
		}
		file := strings.TrimPrefix(path.Clean("/"+entry.Name), "/")
		parts, err := readFile(file, entry, entries)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		files[file] = parts
	}
}

// readFile returns what a file says of what is in the image; nothing of most files.
func readFile(file string, entry *tar.Header, content io.Reader) ([]part, error) {
	switch {
	case file == dpkgStatus:
		return debian(io.LimitReader(content, mostText))
	case strings.HasSuffix(file, ".dist-info/METADATA"):
		return python(io.LimitReader(content, mostText))
	case entry.FileInfo().Mode()&0o111 != 0 && entry.Size <= mostProgram:
		return program(content)
	default:
		return nil, nil
	}
}

// program returns the modules that a Go program was built of; nothing of another file.
func program(content io.Reader) ([]part, error) {
	start := make([]byte, 4)
	if _, err := io.ReadFull(content, start); err != nil || string(start) != "\x7fELF" {
		return nil, nil //nolint:nilerr // a file of fewer bytes is no program
	}
	rest, err := io.ReadAll(content)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(append(start, rest...)))
	if err != nil {
		return nil, nil //nolint:nilerr // a program of another language
	}
	parts := []part{golang("stdlib", strings.TrimPrefix(info.GoVersion, "go")), golang(info.Main.Path, info.Main.Version)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		parts = append(parts, golang(module.Path, module.Version))
	}
	return parts, nil
}

func golang(module, version string) part {
	return part{module, version, "pkg:golang/" + module + "@" + version}
}

// debian returns the packages of dpkg's list that are installed.
func debian(list io.Reader) ([]part, error) {
	var parts []part
	fields := map[string]string{}
	end := func() {
		if name := fields["Package"]; name != "" && strings.HasSuffix(fields["Status"], " installed") {
			version := fields["Version"]
			parts = append(parts, part{name, version, "pkg:deb/debian/" + name + "@" + version + "?arch=" + fields["Architecture"]})
		}
		clear(fields)
	}
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			end()
			continue
		}
		if key, value, ok := strings.Cut(lines.Text(), ": "); ok && !strings.HasPrefix(key, " ") {
			fields[key] = value
		}
	}
	end()
	return parts, lines.Err()
}

// python returns the package whose metadata these are.
func python(metadata io.Reader) ([]part, error) {
	name, version := "", ""
	lines := bufio.NewScanner(metadata)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "" { // the description follows
		switch key, value, _ := strings.Cut(lines.Text(), ": "); key {
		case "Name":
			name = value
		case "Version":
			version = value
		}
	}
	if name == "" {
		return nil, lines.Err()
	}
	return []part{{name, version, "pkg:pypi/" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) + "@" + version}}, lines.Err()
}

// describe builds the document.
func describe(name string, image v1.Image, parts []part) (*spdx.Document, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	of := packageOf("image", part{name, digest.String(), "pkg:oci/" + name + "@" + digest.String()})
	of.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest.Hex}}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://heliostat.dev/spdx/" + name + "-" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created: config.Created.UTC().Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "heliostat-images"}},
		},
		Packages:      []*spdx.Package{of},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", "DESCRIBES", "image")},
	}
	for i, one := range parts {
		id := fmt.Sprintf("part-%d", i+1)
		document.Packages = append(document.Packages, packageOf(id, one))
		document.Relationships = append(document.Relationships, relation("image", "CONTAINS", id))
	}
	return document, nil
}

func packageOf(id string, of part) *spdx.Package {
	const unknown = "NOASSERTION"
	return &spdx.Package{
		PackageSPDXIdentifier: common.ElementID(id), PackageName: of.name, PackageVersion: of.version,
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: of.purl,
		}},
	}
}

func relation(from, kind, to string) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", from), RefB: common.MakeDocElementID("", to), Relationship: kind,
	}
}
