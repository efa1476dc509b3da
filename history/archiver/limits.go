package archiver

import (
	"github.com/heliostat-dev/heliostat/history/wire"
)

// limits bound what callers take together.
type limits struct {
	wire wire.Limits
	// connections is how many there are at once, and hostConnections of one address.
	connections, hostConnections int
	// reads is how many calls read files at once.
	reads int
	// indexBytes is how much memory indexes of packs take.
	indexBytes int64
}

// What one of each takes of memory, at most or about.
const (
	streamBytes   = 64 << 10 // a connection with its TLS, its buffers and its narrow room
	readBytes     = 16 << 20 // a segment of the spool, and the chunks of it
	defaultMemory = 512 << 20
)

// limitsOf divides the memory of the program: a half for streams, an eighth for the wide room of those that are behind, an eighth for
// indexes, and a quarter for reads.
func limitsOf(memory int64) limits {
	if memory <= 0 || memory > 1<<40 {
		memory = defaultMemory
	}
	streams := int(max(memory/2/streamBytes, 256))
	return limits{
		wire: wire.Limits{Streams: streams, NamespaceStreams: streams / 2, Wide: int(max(memory/8, 4*wire.WideRoom))},
		// Beyond those with a stream there are some that begin one, and those of server and operator.
		connections: streams + 256, hostConnections: 256,
		reads:      int(min(max(memory/4/readBytes, 4), 32)),
		indexBytes: memory / 8,
	}
}
