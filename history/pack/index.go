package pack

import (
	"encoding/binary"
	"fmt"
)

// Index is what a pack holds, and where. Of a manifest all runs are in other objects.
type Index struct {
	Cluster UID
	// At is when the pack was made, in milliseconds of Unix time, as all times of this package are.
	At      int64
	Files   []File
	Runs    []Run
	Gaps    []Gap
	Lists   []List
	Objects []string
	Uses    []Use
}

// File is a file with bytes or gaps in a pack. Its path is the newest one that is known.
type File struct {
	FileKey
	Kind Kind
	Path string
}

// Run is a range of a file's bytes, and the frame that has them.
type Run struct {
	// File is a place in Index.Files.
	File           int
	Offset, Length int64
	// At is when the last of the bytes was read.
	At int64
	// Object is 0 for the object of the index itself, and n for Index.Objects[n-1].
	Object int
	// Place is where the frame begins in its object, and Size its length.
	Place int64
	Size  int
	// Sum is the CRC-32C of the bytes before compression.
	Sum uint32
}

// Gap is a range of a file's bytes that nobody has. Its length is 0 where it reaches to the end of the file.
type Gap struct {
	File           int
	Offset, Length int64
	Reason         Reason
	At             int64
}

// List is files of a pod that ended, with their sizes.
type List struct {
	Pod UID
	// IsFinal: these and those of other lists are all files of the pod. Its collector sends that last.
	IsFinal bool
	Files   []Size
}

// Size is how long a file was at its end.
type Size struct {
	// File is a place in Index.Files.
	File int
	Size int64
	// Acked is up to where the archiver had acknowledged the file when the list was made.
	Acked int64
}

// Use is one line about a minute of a cluster, in minutes of Unix time.
type Use struct {
	Minute int64
	Line   []byte
}

// The sections of an index. A reader refuses an unknown one below optional.
const (
	sectionHeader = iota + 1
	sectionPods
	sectionFiles
	sectionRuns
	sectionGaps
	sectionLists
	sectionObjects
	optional   = 64
	sectionUse = optional
)

// encode returns the bytes of an index. Those that break a bound are refused, as a reader would refuse them.
func (x *Index) encode() ([]byte, error) {
	pods := x.pods()
	places := make(map[UID]int, len(pods))
	for i, pod := range pods {
		places[pod] = i
	}
	var all []byte
	add := func(section uint64, entries int, write func([]byte) []byte) {
		if entries > 0 {
			body := write(binary.AppendUvarint(nil, uint64(entries)))
			all = append(binary.AppendUvarint(binary.AppendUvarint(all, section), uint64(len(body))), body...)
		}
	}
	header := binary.AppendUvarint(append([]byte(nil), x.Cluster[:]...), uint64(x.At))
	all = append(binary.AppendUvarint(binary.AppendUvarint(all, sectionHeader), uint64(len(header))), header...)
	add(sectionPods, len(pods), func(b []byte) []byte {
		for _, pod := range pods {
			b = append(b, pod[:]...)
		}
		return b
	})
	add(sectionFiles, len(x.Files), func(b []byte) []byte { return appendFiles(b, x.Files, places) })
	add(sectionRuns, len(x.Runs), func(b []byte) []byte { return appendRuns(b, x.Runs) })
	add(sectionGaps, len(x.Gaps), func(b []byte) []byte {
		for _, gap := range x.Gaps {
			b = appendNumbers(b, int64(gap.File), gap.Offset, gap.Length)
			b = appendNumbers(append(b, byte(gap.Reason)), gap.At)
		}
		return b
	})
	add(sectionLists, len(x.Lists), func(b []byte) []byte { return appendLists(b, x.Lists, places) })
	add(sectionObjects, len(x.Objects), func(b []byte) []byte {
		for _, name := range x.Objects {
			b = append(appendNumbers(b, int64(len(name))), name...)
		}
		return b
	})
	add(sectionUse, len(x.Uses), func(b []byte) []byte {
		for _, use := range x.Uses {
			b = append(appendNumbers(b, use.Minute, int64(len(use.Line))), use.Line...)
		}
		return b
	})
	if len(all) > MaxIndex {
		return nil, fmt.Errorf("index of %d bytes, at most %d fit: %w", len(all), MaxIndex, ErrInvalid)
	}
	// The reader is the one place that knows the bounds.
	if _, err := decodeIndex(all); err != nil {
		return nil, fmt.Errorf("encode index: %w", err)
	}
	return all, nil
}

// pods returns the pods of the files and lists, each once, in their order.
func (x *Index) pods() []UID {
	var all []UID
	seen := map[UID]bool{}
	add := func(pod UID) {
		if !seen[pod] {
			seen[pod] = true
			all = append(all, pod)
		}
	}
	for _, file := range x.Files {
		add(file.Pod)
	}
	for _, list := range x.Lists {
		add(list.Pod)
	}
	return all
}

func appendFiles(b []byte, files []File, pods map[UID]int) []byte {
	for _, file := range files {
		b = append(appendNumbers(b, int64(pods[file.Pod])), file.ID[:]...)
		b = appendNumbers(b, int64(file.Generation), int64(file.Kind), int64(len(file.Path)))
		b = append(b, file.Path...)
	}
	return b
}

func appendRuns(b []byte, runs []Run) []byte {
	for _, run := range runs {
		b = appendNumbers(b, int64(run.File), run.Offset, run.Length, run.At, int64(run.Object), run.Place, int64(run.Size))
		b = binary.BigEndian.AppendUint32(b, run.Sum)
	}
	return b
}

func appendLists(b []byte, lists []List, pods map[UID]int) []byte {
	for _, list := range lists {
		final := int64(0)
		if list.IsFinal {
			final = 1
		}
		b = appendNumbers(b, int64(pods[list.Pod]), final, int64(len(list.Files)))
		for _, file := range list.Files {
			b = appendNumbers(b, int64(file.File), file.Size, file.Acked)
		}
	}
	return b
}

func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, number := range numbers {
		b = binary.AppendUvarint(b, uint64(number))
	}
	return b
}
