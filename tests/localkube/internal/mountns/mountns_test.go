package mountns

import (
	"reflect"
	"testing"
)

func TestMountsBelow(t *testing.T) {
	const table = `1 0 8:1 / / rw - ext4 /dev/vda rw
2 1 8:1 /x /var/lib/localkube/a rw - ext4 /dev/vda rw
3 1 8:1 /x /var/lib/localkube/ab/ns rw - ext4 /dev/vda rw
4 2 0:4 / /var/lib/localkube/a/node1/ns/mnt rw - nsfs nsfs rw
`
	want := []string{"/var/lib/localkube/a/node1/ns/mnt", "/var/lib/localkube/a"}
	if got := mountsBelow(table, "/var/lib/localkube/a"); !reflect.DeepEqual(got, want) {
		t.Errorf("mountsBelow = %q, want %q: not those of ab, the inner one first", got, want)
	}
}
