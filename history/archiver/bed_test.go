package archiver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/keeper"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/store"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var source = wire.Source{Namespace: pack.UID{1}, Cluster: pack.UID{2}, Pod: pack.UID{3}}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newAuthority(name string) *authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return &authority{must(x509.ParseCertificate(raw)), key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}
}

// issue returns a certificate for names, valid until a time.
func (a *authority) issue(until time.Time, names ...string) (certificate, key []byte) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	raw := must(x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.certificate, &private.PublicKey, a.key))
	text := must(x509.MarshalPKCS8PrivateKey(private))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// objects are records of one pod and its cluster.
type objects struct {
	isSynced atomic.Bool
	deleted  atomic.Value
	endings  map[pack.UID]index.Ending
}

func (o *objects) List(context.Context, *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	return &pb.ListRecordsResponse{}, nil
}

func (o *objects) Get(context.Context, *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	return nil, status.Error(codes.NotFound, "no such record")
}

func (o *objects) Endings(pack.UID) map[pack.UID]index.Ending { return o.endings }

func (o *objects) Archives() []keeper.Archive { return nil }

func (o *objects) Mark(pack.UID, index.State, int64, string) error { return nil }

func (o *objects) Delete(_ context.Context, request *pb.DeleteHistoryRequest) error {
	o.deleted.Store(request.GetUid())
	return nil
}

func (o *objects) IsSynced() bool { return o.isSynced.Load() }

func (o *objects) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (o *objects) Pod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	isTrue := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(source.Pod.String()), Labels: map[string]string{v1beta1.LabelCluster: "demo"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: "demo", UID: types.UID(source.Cluster.String()),
			Controller: &isTrue,
		}},
	}}, nil
}

func (o *objects) Cluster(context.Context, string, string) (*v1beta1.ComputeCluster, error) {
	return &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(source.Cluster.String())}}, nil
}

func (o *objects) Namespace(context.Context, string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: types.UID(source.Namespace.String())}}, nil
}

// collectorToken is a token as a collector has it: a review says whose it is.
var collectorToken = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["history.heliostat.dev"]}`)) + ".c2ln"

func review(_ context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
	return authenticationv1.TokenReviewStatus{
		Authenticated: token == collectorToken, Audiences: []string{"history.heliostat.dev"},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:team:default", Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/pod-name": {"demo-head"}, "authentication.kubernetes.io/pod-uid": {source.Pod.String()},
		}},
	}, nil
}

// away is a store that can be away.
type away struct {
	Store
	isAway atomic.Bool
}

var errAway = errors.New("the store is away")

func (a *away) Write(ctx context.Context, key string, data []byte) error {
	if a.isAway.Load() {
		return errAway
	}
	return a.Store.Write(ctx, key, data)
}

func (a *away) Check(ctx context.Context, key string) error {
	if a.isAway.Load() {
		return errAway
	}
	return a.Store.Check(ctx, key)
}

// bed is an archiver with its surroundings.
type bed struct {
	t         *testing.T
	directory string
	config    Config
	authority *authority
	records   *objects
	isLeader  bool
	isAway    bool
	late      atomic.Int64 // how much later than now the archiver's clock is

	store   *away
	running *archiver
	address string
	metrics string
	stop    context.CancelFunc
	ended   chan error
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, directory: t.TempDir(), authority: newAuthority("archivers"), records: &objects{}, isLeader: true}
	b.records.isSynced.Store(true)
	for _, name := range []string{"spool", "claim"} {
		b.must(os.Mkdir(filepath.Join(b.directory, name), 0o700))
	}
	b.config = Config{
		Spool: filepath.Join(b.directory, "spool"), SpoolBytes: 64 << 20, Claim: filepath.Join(b.directory, "claim"),
		Certificate: b.path("tls.crt"), Key: b.path("tls.key"), Authorities: b.path("ca.crt"),
		Namespace: "heliostat", LeaseName: "archiver", Pod: "archiver-0", Memory: 64 << 20,
		Records:   func(Needs) (Records, error) { return b.records, nil },
		Retention: Retention{KeepFor: time.Hour, MaxKeepFor: 24 * time.Hour},
		Now:       func() time.Time { return time.Now().Add(time.Duration(b.late.Load())) },
		Log:       slog.New(slog.DiscardHandler),
	}
	b.write("ca.crt", b.authority.pem)
	b.issue(b.authority)
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) path(name string) string { return filepath.Join(b.directory, name) }

func (b *bed) write(name string, data []byte) { b.must(os.WriteFile(b.path(name), data, 0o600)) }

// issue gives the archiver a certificate of its own.
func (b *bed) issue(of *authority) {
	certificate, key := of.issue(time.Now().Add(time.Hour), "localhost")
	b.write("tls.crt", certificate)
	b.write("tls.key", key)
}

// start runs the archiver.
func (b *bed) start() {
	b.t.Helper()
	inner, err := store.OpenClaim(b.config.Claim)
	b.must(err)
	b.store = &away{Store: inner}
	b.store.isAway.Store(b.isAway)
	var listen net.ListenConfig
	out := outside{review: review, store: b.store, lead: func(ctx context.Context, work func(context.Context)) error {
		if b.isLeader {
			work(ctx)
		}
		<-ctx.Done()
		return nil
	}}
	out.listener, err = listen.Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	b.must(err)
	out.metrics, err = listen.Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	b.must(err)
	b.address, b.metrics = out.listener.Addr().String(), "http://"+out.metrics.Addr().String()
	b.running, err = assemble(b.config, out)
	b.must(err)
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.ended = stop, make(chan error, 1)
	go func() { b.ended <- b.running.run(ctx) }()
	b.t.Cleanup(b.end)
}

// end ends the archiver.
func (b *bed) end() {
	b.t.Helper()
	if b.stop == nil {
		return
	}
	b.stop()
	b.stop = nil
	select {
	case err := <-b.ended:
		b.must(err)
	case <-time.After(30 * time.Second):
		b.t.Error("the archiver does not end")
	}
}

// token is shown with each call.
type token string

func (c token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(c)}, nil
}

func (token) RequireTransportSecurity() bool { return true }

// dial returns a connection with a certificate of an authority for names, or without one.
func (b *bed) dial(by *authority, names ...string) *grpc.ClientConn {
	b.t.Helper()
	settings := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost", MinVersion: tls.VersionTLS13}
	settings.RootCAs.AppendCertsFromPEM(b.authority.pem)
	if len(names) > 0 {
		certificate, key := by.issue(time.Now().Add(30*time.Minute), names...)
		pair, err := tls.X509KeyPair(certificate, key)
		b.must(err)
		settings.Certificates = []tls.Certificate{pair}
	}
	options := append(wire.DialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(settings)))
	if len(names) == 0 {
		options = append(options, grpc.WithPerRPCCredentials(token(collectorToken)))
	}
	connection, err := grpc.NewClient(b.address, options...)
	b.must(err)
	b.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// server returns a client with the server's certificate.
func (b *bed) server() pb.ReadClient { return pb.NewReadClient(b.dial(b.authority, wire.NameOfServer)) }

var file = pack.File{FileKey: pack.FileKey{ID: pack.FileID{15: 1}}, Path: "worker.out"}

// send opens a stream and sends bytes of the file, which are acknowledged once it returns.
func (b *bed) send(offset int64, data []byte) *wire.Sender {
	b.t.Helper()
	acked := make(chan wire.Acked, 1000)
	sender, err := wire.Open(b.t.Context(), b.dial(nil), wire.Version, func(a wire.Acked) { acked <- a })
	b.must(err)
	b.must(sender.Chunk(b.t.Context(), pack.Chunk{File: file, Offset: offset, At: time.Now().UnixMilli(), Data: data}))
	b.await("the acknowledgement", func() bool { return (<-acked).Offset == offset+int64(len(data)) })
	return sender
}

// await calls something until it is true.
func (b *bed) await(what string, is func() bool) {
	b.t.Helper()
	late := time.After(20 * time.Second)
	for !is() {
		select {
		case <-late:
			b.t.Fatalf("%s did not come", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// read returns the file, as a client of Read gets it.
func read(ctx context.Context, from pb.ReadClient, offset int64) (data []byte, err error) {
	stream, err := from.ReadFile(ctx, &pb.ReadFileRequest{
		NamespaceUid: source.Namespace.String(), ClusterUid: source.Cluster.String(), PodUid: source.Pod.String(),
		Id: fmt.Sprintf("%x-0", file.ID[:]), Offset: offset,
	})
	if err != nil {
		return nil, err
	}
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return data, err
		}
		data = append(data, piece.GetData()...)
	}
}

// get returns the answer of the metrics' listener.
func (b *bed) get(path string) (int, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.metrics+path, nil)
	b.must(err)
	answer, err := http.DefaultClient.Do(request)
	b.must(err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	b.must(err)
	return answer.StatusCode, string(text)
}
