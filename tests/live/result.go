package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Machine says what sort of machine it was, not which.
type Machine struct {
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memoryGiB"`
	Kernel    string `json:"kernel"`
}

// DescribeMachine describes the machine that this program runs on.
func DescribeMachine() Machine {
	var info syscall.Sysinfo_t
	var name syscall.Utsname
	machine := Machine{Cores: runtime.NumCPU()}
	if syscall.Sysinfo(&info) == nil {
		machine.MemoryGiB = int((info.Totalram*uint64(info.Unit) + 1<<29) >> 30)
	}
	if syscall.Uname(&name) == nil {
		for _, c := range name.Release {
			if c == 0 || c == '-' {
				break // what follows is the builder's own
			}
			machine.Kernel += string(rune(c))
		}
	}
	return machine
}

// WriteResult writes a result to a directory, as NAME.json and as the page NAME.md.
func WriteResult(dir, name string, result any, page string) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".md"), []byte(page), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the result %s: %w", name, err)
	}
	return nil
}
