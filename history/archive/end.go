package archive

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// EndName is the name of the marker of an archive that expired or was deleted, below the archive's key.
const EndName = "end"

// MaxEnd is how many bytes a marker has, and MaxBy how many of them name a user.
const (
	MaxEnd = 4 << 10
	MaxBy  = 512
)

// End is how an archive ended. Of what was written before its marker nothing is read any more.
type End struct {
	// State is Expired or Deleted.
	State index.State `json:"state"`
	// At is when, in milliseconds of Unix time.
	At int64 `json:"at"`
	// By is the user who deleted it.
	By string `json:"by,omitempty"`
}

// judge refuses what no archiver writes.
func (e End) judge() error {
	if e.State != index.Expired && e.State != index.Deleted || e.At <= 0 || e.At > pack.MaxOffset || len(e.By) > MaxBy {
		return fmt.Errorf("end %.20q at %d by %.40q: %w", e.State, e.At, e.By, pack.ErrInvalid)
	}
	return nil
}

// ParseEnd reads a marker. Fields that it does not have are of a later version.
func ParseEnd(data []byte) (*End, error) {
	if len(data) > MaxEnd {
		return nil, fmt.Errorf("an end of %d bytes, at most %d fit: %w", len(data), MaxEnd, pack.ErrInvalid)
	}
	var end End
	if err := json.Unmarshal(data, &end); err != nil {
		return nil, fmt.Errorf("parse an end: %w: %w", pack.ErrInvalid, err)
	}
	return &end, end.judge()
}

// WriteEnd writes the marker of an archive. From then on nothing is read of what was written before.
func WriteEnd(ctx context.Context, store Store, key Key, end End) error {
	if err := end.judge(); err != nil {
		return err
	}
	data, err := json.Marshal(end)
	if err == nil && len(data) > MaxEnd {
		err = fmt.Errorf("%d bytes: %w", len(data), pack.ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("encode the end of cluster %s: %w", key.Cluster, err)
	}
	if err := store.Write(ctx, key.Prefix()+EndName, data); err != nil {
		return fmt.Errorf("write the end of cluster %s: %w", key.Cluster, err)
	}
	return nil
}
