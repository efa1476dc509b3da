package archive

import (
	"fmt"
	"testing"

	"github.com/heliostat-dev/heliostat/history/pack"
)

func TestIndexes_KeepWhatWasUsedLastWithinTheirMemory(t *testing.T) {
	one := &pack.Index{Runs: make([]pack.Run, 100)}
	size := memoryOf("p/0", one)
	x := newIndexes(3 * size)
	for i := range 3 {
		x.put(fmt.Sprintf("p/%d", i), one)
	}
	if x.get("p/0") == nil {
		t.Fatal("three indexes do not fit")
	}
	x.put("p/3", one)
	x.put("p/3", one)
	x.put("p/4", &pack.Index{Runs: make([]pack.Run, 400)}) // larger than all memory
	for key, want := range map[string]bool{"p/0": true, "p/1": false, "p/2": true, "p/3": true, "p/4": false} {
		if got := x.get(key) != nil; got != want {
			t.Errorf("%s is kept: %t", key, got)
		}
	}
	if x.held != 3*size || x.order.Len() != 3 || len(x.rows) != 3 {
		t.Errorf("%d bytes and %d indexes are counted", x.held, x.order.Len())
	}
	if newIndexes(0).put("p/0", one); newIndexes(0).get("p/0") != nil {
		t.Error("an index is kept without memory")
	}
}

func TestPackAll_LeavesNothingOnTheSpool(t *testing.T) {
	w, r, in := fixture(t)
	w.must(in.Append([]pack.Record{chunkAt(w.files[0], 0, "young")}))
	w.must(r.archive.Pack(t.Context()))
	if s := r.archive.Spooled(); s.Bytes == 0 || s.Oldest != w.now || len(w.bucket.objects) != 0 {
		t.Errorf("a segment that is not due is packed: %+v", s)
	}
	w.must(r.archive.PackAll(t.Context()))
	if s := r.archive.Spooled(); s.Bytes != 0 || s.Oldest != 0 || len(w.bucket.objects) != 1 {
		t.Errorf("after all was packed the spool has %+v", s)
	}
}
