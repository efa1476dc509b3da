// Package instance keeps what is known about one local cluster: where its files
// are, what was asked for, and the lock that keeps two commands on the same
// instance apart.
//
// In: the base directory and a name. Out: paths, the state that was stored. It
// must never be believed to list what exists: a command can be killed between
// making a thing and writing it down, so removal goes by names and paths alone.
package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// maxSocketPath is the kernel's limit for the path of a unix socket, less the
// ".ttrpc" that containerd appends to its own.
const maxSocketPath = 107 - len(".ttrpc")

// Spec is what was asked for; it does not change while the instance exists.
type Spec struct {
	Nodes int `json:"nodes"` // 0: only the control plane
	GPUs  int `json:"gpus"`  // fake devices of each kind on every node
	// PodGroups turns on Kubernetes' own gang scheduling, which is alpha.
	PodGroups bool `json:"podGroups,omitempty"`
	// IPFamilies are those of nodes, pods and Services.
	IPFamilies plan.Families `json:"ipFamilies,omitempty"`
}

// State is what a later command cannot work out by itself.
type State struct {
	Spec
	Index    int      `json:"index"` // of plan.Addresses
	Programs Programs `json:"programs"`
	// Checkout is the directory of the repository that brought it up; empty where none is known.
	Checkout string `json:"checkout,omitempty"`
}

// Programs are paths of the programs that the instance runs.
type Programs struct {
	Kube        string `json:"kube"` // directory with a link for each program
	DNS         string `json:"dns"`
	Provisioner string `json:"provisioner"`
	Pause       string `json:"pause"`
}

// Instance is one local cluster, whether or not it exists.
type Instance struct {
	Name  string
	Base  string
	Dir   string
	Names plan.Names
}

// New describes the instance called name under base.
func New(base, name string) (Instance, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return Instance{}, fmt.Errorf("find directory %s: %w", base, err)
	}
	names, err := plan.NewNames(base, name)
	if err != nil {
		return Instance{}, err
	}
	i := Instance{Name: name, Base: base, Dir: filepath.Join(base, name), Names: names}
	if s := i.Node(plan.Node(plan.MaxNodes)).Socket(); len(s) > maxSocketPath {
		return Instance{}, fmt.Errorf("place instance %s: %s is longer than the %d bytes a unix socket may have; set LOCALKUBE_DIR to a shorter directory", name, s, maxSocketPath)
	}
	return i, nil
}

// Path is a path in the instance's directory.
func (i Instance) Path(parts ...string) string {
	return filepath.Join(append([]string{i.Dir}, parts...)...)
}

// Kubeconfig is the file that holds a cluster administrator's credentials.
func (i Instance) Kubeconfig() string { return i.Path("pki", "admin.kubeconfig") }

// AuditLog is the API server's audit log, one JSON event a line.
func (i Instance) AuditLog() string { return i.Path("audit.log") }

// Log is the log of one component.
func (i Instance) Log(component string) string { return i.Path("log", component+".log") }

// Node describes the files of one node.
func (i Instance) Node(name string) Node { return Node{Name: name, Dir: i.Path(name)} }

// Node is where one node keeps its files.
type Node struct {
	Name string
	Dir  string
}

// Path is a path in the node's directory.
func (n Node) Path(parts ...string) string {
	return filepath.Join(append([]string{n.Dir}, parts...)...)
}

// Socket is where the node's containerd listens.
func (n Node) Socket() string { return n.Path("c.sock") }

// Images is the root directory of the node's containerd.
func (n Node) Images() string { return n.Path("containerd") }

// MountNamespace is the file that holds the node's mount namespace.
func (n Node) MountNamespace() string { return n.Path("ns", "mnt") }

// Load reads the state; fs.ErrNotExist when there is none.
func (i Instance) Load() (State, error) {
	return load(i.Path("state.json"))
}

func load(path string) (State, error) {
	var s State
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read state %s: %w", path, err)
	}
	return s, nil
}

// Store writes the state.
func (i Instance) Store(s State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write state of %s: %w", i.Name, err)
	}
	return WriteFile(i.Path("state.json"), data)
}

// TakenIndexes are the indexes of all instances under base.
func TakenIndexes(base string) (map[int]bool, error) {
	taken := map[int]bool{}
	files, err := filepath.Glob(filepath.Join(base, "*", "state.json"))
	if err != nil {
		return nil, fmt.Errorf("list instances in %s: %w", base, err)
	}
	for _, f := range files {
		s, err := load(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		taken[s.Index] = true
	}
	return taken, nil
}

// trash is where removed directories wait for their deletion: the rename is one
// step, the deletion is not, and what is half deleted must not look alive.
func (i Instance) trash() string { return filepath.Join(i.Base, ".trash", i.Names.Tag) }

// Discard moves the instance's directory out of the way and deletes it, with
// what an earlier Discard that was killed has left.
func (i Instance) Discard() error {
	for n := 0; ; n++ {
		err := os.MkdirAll(filepath.Dir(i.trash()), 0o700)
		if err == nil {
			err = os.Rename(i.Dir, fmt.Sprintf("%s.%d", i.trash(), n))
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			break
		}
		if !errors.Is(err, fs.ErrExist) && !strings.Contains(err.Error(), "not empty") {
			return fmt.Errorf("remove instance %s: %w", i.Name, err)
		}
	}
	left, err := filepath.Glob(i.trash() + ".*")
	if err != nil {
		return fmt.Errorf("remove instance %s: %w", i.Name, err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove instance %s: %w", i.Name, err)
		}
	}
	_ = os.Remove(filepath.Dir(i.trash())) // fails while another instance is being removed
	return nil
}

// WriteFile writes a file whole or not at all, readable by root alone.
func WriteFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
