package main

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"syscall"
	"time"
)

// reference is the CPU time of one turn of work on the machine that set tests/budget.yaml: the
// median of three calibrations of a machine with 2 cores that did nothing else.
const reference = 500 * time.Millisecond

// measureSlowness returns how much CPU time this machine needs for a fixed piece of work, as a
// multiple of reference. It takes the least of three turns: what a busy neighbour adds only slows.
func measureSlowness() float64 {
	var turns []time.Duration
	for range 3 {
		begin := processTime()
		work()
		turns = append(turns, processTime()-begin)
	}
	return slices.Min(turns).Seconds() / reference.Seconds()
}

// work does what tests of an operator do most: it hashes, fills maps, and encodes and decodes JSON.
func work() {
	type object struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}
	sum := sha256.Sum256(nil)
	for range 40000 {
		o := object{Name: string(sum[:8]), Labels: map[string]string{}}
		for i := range 16 {
			sum = sha256.Sum256(sum[:])
			o.Labels[string('a'+rune(i))] = string(sum[:4])
		}
		text, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(text, &o)
		}
		if err != nil {
			panic(err) // a struct of strings always has JSON
		}
	}
}

// processTime returns the CPU time that this process has used.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // the arguments are constants
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
