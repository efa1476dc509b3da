package archiver

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heliostat-dev/heliostat/history/store"
)

// Store has packs, final objects and records.
type Store interface {
	Write(ctx context.Context, key string, data []byte) error
	Read(ctx context.Context, key string, offset, length int64) ([]byte, error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string, each func(key string, size, at int64) error) error
	Check(ctx context.Context, key string) error
	IsNotFound(err error) bool
	Close() error
}

// openStore opens the bucket or the claim.
func openStore(ctx context.Context, cfg Config) (Store, error) {
	switch {
	case (cfg.StoreURL == "") == (cfg.Claim == ""):
		return nil, errors.New("either the URL of a store or the directory of a claim is needed")
	case cfg.Claim != "":
		return store.OpenClaim(cfg.Claim)
	default:
		return store.Open(ctx, cfg.StoreURL)
	}
}

// storeName names the store in the mark of the spool. A URL has no credentials: store.Open refuses them.
func (a *archiver) storeName() string {
	if a.Claim != "" {
		return "claim:" + a.Claim
	}
	return a.StoreURL
}

// callTime is how long one call of the store may take.
const callTime = time.Minute

// bucket is the store, with a bound on the time of each call, and its failures counted.
type bucket struct {
	Store
	measures *measures
	// isAway: the last object could not be written.
	isAway atomic.Bool
	// failure is a string: why the store could not be used at the start.
	failure atomic.Value
}

func newBucket(inner Store, measures *measures) *bucket {
	return &bucket{Store: inner, measures: measures}
}

// counted counts the failure of a call.
func (b *bucket) counted(call string, err error) error {
	if err != nil && !b.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		b.measures.storeErrors.WithLabelValues(call).Inc()
	}
	return err
}

// Write writes an object.
func (b *bucket) Write(ctx context.Context, key string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := b.Store.Write(ctx, key, data)
	b.isAway.Store(err != nil)
	if err == nil && strings.HasPrefix(key, "v1/data/") && strings.Contains(key, "/p/") {
		b.measures.packs.Inc()
	}
	return b.counted("write", err)
}

// Read returns bytes of an object.
func (b *bucket) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	data, err := b.Store.Read(ctx, key, offset, length)
	return data, b.counted("read", err)
}

// Delete removes an object.
func (b *bucket) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.counted("delete", b.Store.Delete(ctx, key))
}

// List lists objects. It has no bound of its own: there can be many, and its caller has one.
func (b *bucket) List(ctx context.Context, prefix string, each func(key string, size, at int64) error) error {
	return b.counted("list", b.Store.List(ctx, prefix, each))
}

// check writes, reads and deletes an object of a replica.
func (b *bucket) check(ctx context.Context, replica int) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.counted("check", b.Check(ctx, "v1/check/"+strconv.Itoa(replica)))
}
