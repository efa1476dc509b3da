package archiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/heliostat-dev/heliostat/history/archive"
)

// markName is the file of the spool that has whose it is.
const markName = "archiver"

// owner is what that file has.
type owner struct {
	Installation string `json:"installation"`
	Replica      int    `json:"replica"`
	// Store is the one that was written to and read from.
	Store string `json:"store,omitempty"`
}

// mark is whose a spool is.
type mark struct {
	volume archive.Volume
	mutex  sync.Mutex
	owner  owner
}

// errForeign is about a spool that is another one's.
var errForeign = errors.New("it is the spool of another archiver: use a volume of its own for each replica of each installation")

// openMark reads whose a spool is, and marks one that is nobody's.
func openMark(volume archive.Volume, installation string, replica int) (*mark, error) {
	m := &mark{volume: volume, owner: owner{Installation: installation, Replica: replica}}
	names, err := volume.List()
	if err != nil {
		return nil, fmt.Errorf("list the spool: %w", err)
	}
	if !slices.Contains(names, markName) {
		return m, m.write()
	}
	data, err := volume.Read(markName)
	if err != nil {
		return nil, fmt.Errorf("read whose the spool is: %w", err)
	}
	var is owner
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, fmt.Errorf("read whose the spool is: %w", err)
	}
	if is.Installation != installation || is.Replica != replica {
		return nil, fmt.Errorf("open the spool of replica %d of %s: %w", is.Replica, is.Installation, errForeign)
	}
	m.owner = is
	return m, nil
}

func (m *mark) write() error {
	data, err := json.Marshal(m.owner)
	if err != nil {
		return fmt.Errorf("write whose the spool is: %w", err)
	}
	if err := m.volume.Replace(markName, data); err != nil {
		return fmt.Errorf("write whose the spool is: %w", err)
	}
	return nil
}

// checked returns the store that was right once.
func (m *mark) checked() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.owner.Store
}

// keep notes a store that is right.
func (m *mark) keep(store string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.owner.Store == store {
		return nil
	}
	m.owner.Store = store
	return m.write()
}
