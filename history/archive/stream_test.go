package archive

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

func TestRoom_HoldsPodsAndNamespacesToTheirRates(t *testing.T) {
	w := newWorld(t, 1)
	r := w.replicas[0]
	r.archive.settings.PodRate, r.archive.settings.NamespaceRate = 1000, 1500
	open := func(namespace, pod byte) wire.Intake {
		in, err := r.archive.Open(t.Context(), wire.Source{Namespace: pack.UID{namespace}, Cluster: w.key.Cluster, Pod: pack.UID{pod}})
		w.must(err)
		return in
	}
	one, two, other := open(1, 1), open(1, 2), open(2, 3)
	for _, step := range []struct {
		after      int64
		in         wire.Intake
		want, room int
	}{
		{0, one, 5000, 1000}, {0, one, 5000, 0}, {0, two, 5000, 500}, {0, other, 300, 300}, {0, other, 5000, 700},
		{100, one, 5000, 100}, {0, two, 5000, 50}, {3_600_000, two, 5000, 1000}, {0, one, 5000, 500}, {-3_600_000, two, 5000, 0},
	} {
		w.now += step.after
		room, again := step.in.Room(step.want)
		if room != step.room || room < step.want && again != rateWait {
			t.Errorf("at %d room for %d of %d bytes, and again after %s: want %d", w.now, room, step.want, again, step.room)
		}
	}
	w.now += 7_200_000
	if w.must(r.archive.Pack(t.Context())); len(r.archive.rates) > 0 {
		t.Errorf("%d namespaces that send nothing are remembered", len(r.archive.rates))
	}
}

// TestArchive_KeepsWhatCollectorsSend has both ends of the protocol over the archive.
func TestArchive_KeepsWhatCollectorsSend(t *testing.T) {
	w := newWorld(t, 1)
	r, file := w.replicas[0], w.files[0]
	source := wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}}
	limits := wire.Limits{Streams: 10, NamespaceStreams: 10, Wide: 1 << 20}
	server := wire.NewServer(func(context.Context) (wire.Source, error) { return source, nil }, r.archive, limits)
	listener := bufconn.Listen(4 << 10)
	served := grpc.NewServer(wire.ServerOptions()...)
	historyv1.RegisterCollectServer(served, server)
	go func() { _ = served.Serve(listener) }() // ends with Stop
	defer served.Stop()
	connection, err := grpc.NewClient("passthrough:archive", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	w.must(err)
	defer connection.Close()
	text := strings.Repeat("a line of a log\n", 20_000)
	for at := int64(0); at < int64(len(text)); {
		sender, err := wire.Open(t.Context(), connection, wire.Version, func(wire.Acked) {})
		w.must(err)
		for _, one := range sender.Resume() {
			at = one.Offset
		}
		end := min(at+100_000, int64(len(text)))
		w.must(sender.Chunk(t.Context(), pack.Chunk{File: file, Offset: at, At: w.now, Data: []byte(text[at:end])}))
		w.must(sender.Ended(t.Context(), []pack.Listed{{ID: file.ID, Size: end, Acked: at}})) // comes back once all before is durable
		sender.Close()
		at = end
	}
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	if got := strings.Join(pieces(t, r.archive, w.key, file.FileKey, noEnd), ""); got != text {
		t.Errorf("%d of %d bytes are read", len(got), len(text))
	}
}
