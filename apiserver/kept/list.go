package kept

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// File is a file of an object.
type File struct {
	*historyv1.ListFilesResponse_File
	ClusterUID string
}

// Archive is what is kept of a cluster that an object ran on.
type Archive struct {
	ClusterUID, State string
	Archived          int64
}

// Page is a page of the files of an object.
type Page struct {
	Files    []File
	Archives []Archive
	// Next is what the next page begins after. It is empty on the last one.
	Next string
}

// ErrContinue is that a page begins after nothing that a page before gave.
var ErrContinue = errors.New("it is none that a page gave")

// List returns a page of the files of an object whose paths match patterns.
func (k *Kept) List(ctx context.Context, object *Object, patterns []string, limit int, after string) (Page, error) {
	at, token, err := splitContinue(after, len(object.Places))
	if err != nil {
		return Page{}, err
	}
	page := Page{}
	for ; at < len(object.Places); at, token = at+1, "" {
		place := object.Places[at]
		for isFirst := true; isFirst || token != ""; isFirst = false {
			answer, err := k.ListFiles(ctx, &historyv1.ListFilesRequest{
				NamespaceUid: object.Record.GetNamespaceUid(), ClusterUid: place.ClusterUID, Paths: begins(place, patterns), Limit: int32(limit - len(page.Files)), After: token,
			})
			if isNothing(err) {
				break
			}
			if err != nil {
				return Page{}, fmt.Errorf("list files of cluster %s: %w", place.ClusterUID, err)
			}
			page.note(Archive{place.ClusterUID, answer.GetArchiveState(), answer.GetArchived()})
			for _, file := range answer.GetFiles() {
				if path := string(file.GetPath()); place.Has(path) && isChosen(patterns, path) {
					page.Files = append(page.Files, File{file, place.ClusterUID})
				}
			}
			if token = answer.GetNext(); len(page.Files) >= limit {
				return page.until(at, token, len(object.Places)), nil
			}
		}
	}
	return page, nil
}

// note adds an archive that is not noted yet.
func (p *Page) note(one Archive) {
	if !slices.ContainsFunc(p.Archives, func(other Archive) bool { return other.ClusterUID == one.ClusterUID }) {
		p.Archives = append(p.Archives, one)
	}
}

// until returns the page with what the next one begins after.
func (p *Page) until(at int, token string, places int) Page {
	if token == "" {
		at++
	}
	if at < places {
		p.Next = strconv.Itoa(at) + "." + token
	}
	return *p
}

// splitContinue returns the place and the token after which a page begins.
func splitContinue(text string, places int) (at int, token string, err error) {
	if text == "" {
		return 0, "", nil
	}
	number, token, isTwo := strings.Cut(text, ".")
	at, err = strconv.Atoi(number)
	if err != nil || !isTwo || at < 0 || at >= places {
		return 0, "", ErrContinue
	}
	return at, token, nil
}

// maxPages is how many pages of files are looked through for one.
const maxPages = 100

// find returns the files of a cluster with a path, or with one that begins so where it ends with an asterisk.
func (k *Kept) find(ctx context.Context, namespaceUID, clusterUID, path string) (files []File, archive Archive, err error) {
	for token, i := "", 0; i == 0 || token != "" && i < maxPages; i++ {
		answer, err := k.ListFiles(ctx, &historyv1.ListFilesRequest{NamespaceUid: namespaceUID, ClusterUid: clusterUID, Paths: []string{path}, After: token})
		if isNothing(err) {
			return files, archive, nil
		}
		if err != nil {
			return nil, archive, fmt.Errorf("find file %q of cluster %s: %w", path, clusterUID, err)
		}
		archive = Archive{clusterUID, answer.GetArchiveState(), answer.GetArchived()}
		for _, file := range answer.GetFiles() {
			files = append(files, File{file, clusterUID})
		}
		token = answer.GetNext()
	}
	return files, archive, nil
}

// Find returns the files of an object with a path.
func (k *Kept) Find(ctx context.Context, object *Object, path string) ([]File, error) {
	var all []File
	for _, place := range object.Places {
		if strings.HasSuffix(path, "*") || !place.Has(path) {
			continue
		}
		files, _, err := k.find(ctx, object.Record.GetNamespaceUid(), place.ClusterUID, path)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// newest returns of files that had the same path the one whose last byte is the newest; nil of none.
func newest(files []File) *File {
	var found *File
	for i := range files {
		if found == nil || files[i].GetLast() >= found.GetLast() {
			found = &files[i]
		}
	}
	return found
}
