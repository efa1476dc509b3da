package store

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/heliostat-dev/heliostat/history/pack"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openS3 opens a bucket of a server that speaks S3 by TLS, in memory, as the product opens one.
func openS3(t *testing.T) *Store {
	backend := s3mem.New()
	must(t, backend.CreateBucket("history"))
	server := httptest.NewTLSServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_CA_BUNDLE": authority, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	opened, err := Open(t.Context(), "s3://history/prod/one?region=eu-west-1&use_path_style=true&request_checksum_calculation=when_required&endpoint="+server.URL)
	must(t, err)
	return opened
}

func openClaim(t *testing.T) *Store {
	opened, err := OpenClaim(t.TempDir())
	must(t, err)
	return opened
}

// TestStore_HoldsItsContract is what each kind of store must do.
func TestStore_HoldsItsContract(t *testing.T) {
	for kind, open := range map[string]func(*testing.T) *Store{"claim": openClaim, "s3": openS3} {
		for behaviour, test := range map[string]func(*testing.T, *Store){
			"gives back what was written": testRead, "lists by prefix in order": testList, "deletes": testDelete, "refuses keys": testKeys,
			"ends with its caller": testCancel, "holds packs": testPack, "is checked": func(t *testing.T, s *Store) {
				must(t, s.Check(t.Context(), "v1/check-0"))
				if all := list(t, s, ""); len(all) > 0 {
					t.Errorf("a check leaves %v", all)
				}
			},
		} {
			t.Run(kind+" "+behaviour, func(t *testing.T) {
				s := open(t)
				defer func() { must(t, s.Close()) }()
				test(t, s)
			})
		}
	}
}

func testRead(t *testing.T, s *Store) {
	ctx, data := t.Context(), bytes.Repeat([]byte("0123456789"), 300_000)
	must(t, s.Write(ctx, "v1/a", []byte("replaced")))
	must(t, s.Write(ctx, "v1/a", data))
	must(t, s.Write(ctx, "v1/empty", nil))
	for _, one := range []struct{ offset, length, from, to int64 }{
		{0, 3_000_000, 0, 3_000_000}, {5, 10, 5, 15}, {2_999_995, 5, 2_999_995, 3_000_000}, {2_999_995, 100, 2_999_995, 3_000_000},
	} {
		got, err := s.Read(ctx, "v1/a", one.offset, one.length)
		if err != nil || !bytes.Equal(got, data[one.from:one.to]) {
			t.Errorf("%d bytes at %d are %.20q (%d): %v", one.length, one.offset, got, len(got), err)
		}
	}
	if got, err := s.Read(ctx, "v1/empty", 0, 10); err != nil && !errors.Is(err, ErrNotFound) && len(got) > 0 {
		t.Errorf("an empty object: %q, %v", got, err)
	}
	if _, err := s.Read(ctx, "v1/b", 0, 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("an object that is not there: %v", err)
	}
}

func list(t *testing.T, s *Store, prefix string) (keys []string) {
	t.Helper()
	must(t, s.List(t.Context(), prefix, func(key string, size, at int64) error {
		if size != int64(len(key)) || at < 1_700_000_000_000 {
			t.Errorf("%s has %d bytes and was written at %d", key, size, at)
		}
		keys = append(keys, key)
		return nil
	}))
	return keys
}

func testList(t *testing.T, s *Store) {
	var want []string
	for i := range 1100 { // more than one page
		want = append(want, fmt.Sprintf("v1/data/n/c/p/%04d", i))
	}
	for _, key := range append([]string{"v1/data/n/d/p/1", "v1/data/n/b", "v1/records/a", "v1/data/n/c1/p/1"}, want...) {
		must(t, s.Write(t.Context(), key, []byte(key)))
	}
	if diff := cmp.Diff(want, list(t, s, "v1/data/n/c/")); diff != "" {
		t.Error(diff)
	}
	if all := list(t, s, ""); len(all) != 1104 || !slices.IsSorted(all) {
		t.Errorf("all are %d objects", len(all))
	}
	if none := list(t, s, "v1/data/x/"); len(none) > 0 {
		t.Errorf("a prefix of nothing has %v", none)
	}
	stop := errors.New("stop")
	if err := s.List(t.Context(), "", func(string, int64, int64) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a list that its caller ends: %v", err)
	}
}

func testDelete(t *testing.T, s *Store) {
	ctx := t.Context()
	must(t, s.Write(ctx, "v1/a/b", []byte("v1/a/b")))
	must(t, s.Write(ctx, "v1/a/c", []byte("v1/a/c")))
	must(t, s.Delete(ctx, "v1/a/b"))
	must(t, s.Delete(ctx, "v1/a/b"))
	must(t, s.Delete(ctx, "v1/x/y"))
	if diff := cmp.Diff([]string{"v1/a/c"}, list(t, s, "")); diff != "" {
		t.Error(diff)
	}
	must(t, s.Delete(ctx, "v1/a/c"))
	must(t, s.Write(ctx, "v1/a/c", []byte("v1/a/c")))
	if diff := cmp.Diff([]string{"v1/a/c"}, list(t, s, "")); diff != "" {
		t.Error(diff)
	}
}

func testKeys(t *testing.T, s *Store) {
	for name, key := range map[string]string{
		"empty": "", "absolute": "/a", "leads out": "../a", "dots within": "a/../../b", "empty part": "a//b", "capital": "A", "NUL": "a\x00",
		"newline": "a\n", "backslash": `a\b`, "of another alphabet": "ä", "long": strings.Repeat("a", MaxKey+1), "temporary": "a.tmp",
	} {
		_, read := s.Read(t.Context(), key, 0, 1)
		for call, err := range map[string]error{
			"write": s.Write(t.Context(), key, []byte("x")), "read": read, "delete": s.Delete(t.Context(), key),
		} {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%s of a key that is %s: %v", call, name, err)
			}
		}
	}
}

func testCancel(t *testing.T, s *Store) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := s.Write(ctx, "v1/a", bytes.Repeat([]byte("x"), 1<<20)); err == nil {
		t.Error("an object was written for a caller who has gone")
	}
	if all := list(t, s, ""); len(all) > 0 {
		t.Errorf("%v is there after a write that failed", all)
	}
}

// object is an object of a store as an io.ReaderAt.
type object struct {
	ctx   context.Context //nolint:containedctx // ReadAt has none
	store *Store
	key   string
}

func (o object) ReadAt(buffer []byte, offset int64) (int, error) {
	data, err := o.store.Read(o.ctx, o.key, offset, int64(len(buffer)))
	return copy(buffer, data), err
}

func testPack(t *testing.T, s *Store) {
	e, err := pack.NewEncoder()
	must(t, err)
	d, err := pack.NewDecoder()
	must(t, err)
	w := e.NewWriter(pack.UID{1}, 5)
	text := bytes.Repeat([]byte("a line of a log\n"), 10_000)
	must(t, w.Add(pack.File{Path: "a"}, 0, 1, text))
	data, err := w.Finish()
	must(t, err)
	must(t, s.Write(t.Context(), "v1/p", data))
	stored := object{t.Context(), s, "v1/p"}
	index, err := d.Open(stored, int64(len(data)))
	must(t, err)
	got, err := d.Read(stored, index.Runs[0])
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes of %d come back: %v", len(got), len(text), err)
	}
	if _, err := d.Open(object{t.Context(), s, "v1/q"}, 1000); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pack that is not there: %v", err)
	}
}

// TestOpenClaim_LeavesNothingBehind: a claim has the objects and no other file, and no directory that is empty.
func TestOpenClaim_LeavesNothingBehind(t *testing.T) {
	path := t.TempDir()
	s, err := OpenClaim(path)
	must(t, err)
	must(t, s.Write(t.Context(), "v1/a/b", []byte("x")))
	must(t, s.Write(t.Context(), "v1/c", []byte("x")))
	must(t, s.Delete(t.Context(), "v1/a/b"))
	var all []string
	must(t, filepath.WalkDir(path, func(name string, _ os.DirEntry, err error) error {
		all = append(all, strings.TrimPrefix(name, path))
		return err
	}))
	if diff := cmp.Diff([]string{"", "/v1", "/v1/c"}, all); diff != "" {
		t.Error(diff)
	}
	if _, err := OpenClaim(filepath.Join(path, "missing")); err == nil {
		t.Error("a claim that is not mounted was opened")
	}
}

func TestCheckURL_RefusesAllButTheList(t *testing.T) {
	for name, text := range map[string]string{
		"files":                   "file:///etc",
		"memory":                  "mem://",
		"no scheme":               "history",
		"plain HTTP":              "http://example.org/history",
		"plain HTTP to S3":        "s3://history?disable_https=true",
		"a plain endpoint":        "s3://history?endpoint=http://minio:9000",
		"an endpoint without TLS": "s3://history?endpoint=minio:9000",
		"no credentials on s3":    "s3://history?anonymous=true",
		"no credentials on gs":    "gs://history?anonymous=true",
		"a profile":               "s3://history?profile=root",
		"a key file":              "gs://history?private_key_path=/etc/passwd",
		"plain HTTP to Azure":     "azblob://history?protocol=http",
		"an emulator":             "azblob://history?localemu=true",
		"a second prefix":         "s3://history?prefix=a/",
		"a parameter of another":  "gs://history?region=eu",
		"a parameter twice":       "s3://history?region=eu&region=us",
		"a name in capitals":      "s3://history?Region=eu",
		"a user":                  "s3://key:secret@history",
		"a fragment":              "s3://history#a",
		"no bucket":               "s3:///prod",
		"a path that leads out":   "s3://history/../other",
		"a path with an escape":   "s3://history/a%2f..%2fb",
		"broken parameters":       "s3://history?a;b",
		"no URL":                  "s3://history\x7f",
	} {
		if _, _, err := checkURL(text); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %q: %v", name, text, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error %q shows a secret", name, err)
		}
	}
	for text, want := range map[string][2]string{
		"s3://ray-history/prod?region=eu-west-1":                         {"s3://ray-history?region=eu-west-1", "prod/"},
		"s3://h?ssetype=aws:kms&kmskeyid=a&endpoint=https://minio:9000/": {"s3://h?ssetype=aws:kms&kmskeyid=a&endpoint=https://minio:9000/", ""},
		"gs://h/a/b/": {"gs://h", "a/b/"},
		"azblob://h?storage_account=me&domain=blob.core.usgovcloudapi.net": {"azblob://h?storage_account=me&domain=blob.core.usgovcloudapi.net", ""},
	} {
		bucket, prefix, err := checkURL(text)
		if got := [2]string{bucket, prefix}; err != nil || got != want {
			t.Errorf("%s became %q: %v", text, got, err)
		}
	}
}
