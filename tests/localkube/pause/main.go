// Command pause is the first process of every pod's sandbox: it holds the pod's
// namespaces open and reaps the orphans of pods that share their processes.
//
// In: nothing but signals. Out: nothing. It must never use more than the little
// memory that an idle Go program needs, for there is one in every pod.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}
