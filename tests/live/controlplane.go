package live

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// ControlPlaneTrouble returns the last lines in which etcd and the API server of a local Kubernetes warn or fail, n of each
// at most; nothing where its audit log is not known. When they hang, all else that failed is a consequence.
func ControlPlaneTrouble(n int) string {
	audit := os.Getenv("LOCALKUBE_AUDIT_LOG")
	if audit == "" {
		return ""
	}
	var out strings.Builder
	for _, name := range []string{"etcd.log", "kube-apiserver.log"} {
		for _, line := range troubleIn(filepath.Join(filepath.Dir(audit), "log", name), n) {
			out.WriteString(name + ": " + line + "\n")
		}
	}
	return out.String()
}

// troubleIn finds the last lines of a log that are warnings or worse, as etcd and Kubernetes mark them.
func troubleIn(path string, n int) []string {
	file, err := os.Open(path)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = file.Close() }()
	var found []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		line := scanner.Text()
		isKubernetes := line != "" && strings.ContainsRune("WEF", rune(line[0]))
		isEtcd := strings.Contains(line, `"level":"`) && !strings.Contains(line, `"level":"info"`)
		if isKubernetes || isEtcd {
			found = append(found, line[:min(len(line), 400)])
		}
	}
	if err := scanner.Err(); err != nil {
		found = append(found, err.Error())
	}
	return found[max(0, len(found)-n):]
}
