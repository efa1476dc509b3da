package cluster

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Exit is a worker's planned exit: a fact that is neither spec nor observable, and so
// stands in an annotation of the pod, from before Ray is asked to drain it.
type Exit struct {
	Version int `json:"v"`
	// Since and Until bound the drain.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Why is one of the causes below.
	Why string `json:"why"`
}

// Why a worker exits.
const (
	exitSurplus   = "Surplus"
	exitSuspended = "GroupSuspended"
	exitRemoved   = "GroupRemoved"
	exitRolling   = "Rolling"
	exitRetired   = "Retired"
	exitNode      = "NodeDraining"
)

const exitVersion = 1

// String is the annotation's text.
func (e Exit) String() string {
	text, _ := json.Marshal(e) // times and strings always marshal
	return string(text)
}

// ParseExit reads the annotation's text. It fails on text that this version did not write.
func ParseExit(text string) (Exit, error) {
	var exit Exit
	if err := json.Unmarshal([]byte(text), &exit); err != nil {
		return Exit{}, fmt.Errorf("parse exit: %w", err)
	}
	if exit.Version != exitVersion || exit.Until.IsZero() {
		return Exit{}, fmt.Errorf("parse exit: version %d until %v, want version %d and a time", exit.Version, exit.Until, exitVersion)
	}
	return exit, nil
}

// exit is the pod's planned exit. Text that cannot be read is one that is over: the pod
// has not been counted since, and nobody could say until when it may stay.
func (p Pod) exit() Exit {
	exit, err := ParseExit(p.Annotations[v1alpha1.AnnotationDrain])
	if err != nil {
		return Exit{Version: exitVersion}
	}
	return exit
}
