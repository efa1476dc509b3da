package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
	"github.com/heliostat-dev/heliostat/tests/internal/confined"
	"github.com/heliostat-dev/heliostat/tests/internal/hostile"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Counts of TestHostileCallers_StopNobody, unless variables give others: connections without a token to each listener, accounts
// without rights, and seconds, of which 0 is one round.
const (
	hostileAnonymous = 50
	hostileAccounts  = 20
	hostileCallers   = 0
	// hostileRate is how many requests all attackers send in a second, where there are seconds.
	hostileRate = 100
	// attackersCPU is what they have of the CPU, in cores.
	attackersCPU = 0.5
	// Those who never end their requests have so many on a connection, where there are seconds and in one round.
	hostileStreams, roundStreams = 32, 4
	// askedPause is the time from one request of an honest caller at a listener to the next, and askedWithin is against hanging alone.
	askedPause  = 50 * time.Millisecond
	askedWithin = 60 * time.Second
	// besiegedHost is the server's address in its land.
	besiegedHost = "10.251.0.1"
)

// TestHostileCallers_StopNobody: beside callers without a token and accounts without rights who send all that takes memory, or
// never end, the server goes on within the memory that the chart gives it, and honest callers wait no longer. It times requests.
func TestHostileCallers_StopNobody(t *testing.T) {
	figures := &live.Callers{
		Anonymous: number(t, "HELIOSTAT_ANONYMOUS", hostileAnonymous), Accounts: number(t, "HELIOSTAT_ACCOUNTS", hostileAccounts),
		Seconds: number(t, "HELIOSTAT_HOSTILE_SECONDS", hostileCallers),
	}
	b := newBesieged(t, figures)
	orders := b.orders(t, figures)
	orders.IsCalm = true
	figures.Calm = b.endure(t, orders)
	orders.IsCalm = false
	figures.Beside = b.endure(t, orders)
	for listener, ask := range b.honest(t) {
		if err := ask(t.Context(), 0); err != nil {
			t.Errorf("after all of it, an honest caller is not answered at %s: %v", listener, err)
		}
	}

	peak, err := b.group.Peak()
	must(t, err)
	figures.Kills, err = b.group.Kills()
	must(t, err)
	figures.Memory, figures.HasEnded = float64(peak)/(1<<20), b.hasEnded()
	t.Logf("%s; answers: %v", figures, figures.Beside.Answers)
	must(t, jobs.Save(figures))
	for _, broken := range figures.Broken() {
		if !strings.HasPrefix(broken, live.WaitedAt) || *judging {
			t.Error(broken)
		}
	}
}

// besieged is a server in a control group of its own, with all of its listeners, where honest callers and attackers can reach it.
type besieged struct {
	*portal
	attackers *confined.Group
	// namespace is that of an honest editor with a token, whose cluster is demo; tenant is the hostile one.
	namespace, token, tenant string
}

func newBesieged(t *testing.T, figures *live.Callers) *besieged {
	t.Helper()
	where := newLand(t)
	where.leadToAPIServer(t)
	limit, env := memoryOf(t, "templates/server.yaml", "--set", "server.enabled=true,server.dashboards.enabled=true")
	figures.MemoryLimit = float64(limit) / (1 << 20)
	b := &besieged{portal: &portal{group: newGroup(t, "server", confined.Limits{Memory: limit}), env: []string{env}, where: where},
		attackers: newGroup(t, "attackers", confined.Limits{CPU: attackersCPU}), namespace: newNamespace(t), tenant: newNamespace(t)}
	shared.heads.make(t, b.namespace, making{where: where, ready: func(*head) {}})
	shared.heads.make(t, b.tenant, making{raw: func(pod *corev1.Pod) (string, error) { return hostileHead(t, where, pod) }})
	watching(t, b.namespace, b.tenant)
	page, dashboards := besiegedHost+":8443", besiegedHost+":8444"
	b.begin(t, page, "--grpc-address="+besiegedHost+":9443", "--page-url=https://"+page, "--dashboards-address="+dashboards, "--dashboards-url=https://"+dashboards)
	b.token = account(t, b.namespace, "editor", "edit")
	for _, namespace := range []string{b.namespace, b.tenant} {
		must(t, shared.Create(t.Context(), newCluster(namespace, "demo", 0)))
	}
	for i := range 3 {
		must(t, shared.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.tenant, Name: fmt.Sprint("bomb-", i), Labels: map[string]string{"heliostat.dev/preset": ""}},
			Data:       map[string]string{"schema.json": `{"type":"object"}`, "manifest.yaml": attackers.Anchors(5000 * (i + 1))},
		}))
	}
	for _, namespace := range []string{b.namespace, b.tenant} {
		ready(t, types.NamespacedName{Namespace: namespace, Name: "demo"})
	}
	for listener, ask := range b.honest(t) {
		eventually(t, "an honest caller to be answered at "+listener, func(ctx context.Context) error { return ask(ctx, 0) })
	}
	return b
}

// newGroup makes a control group that ends with the test.
func newGroup(t *testing.T, name string, limits confined.Limits) *confined.Group {
	t.Helper()
	group, err := confined.New(fmt.Sprintf("heliostat-%s-%d", name, os.Getpid()), limits)
	must(t, err)
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	return group
}

// hostileHead puts a server that answers without end behind the dashboard of a head.
func hostileHead(t *testing.T, where *land, pod *corev1.Pod) (string, error) {
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead {
		return "", nil
	}
	address := where.address()
	listener, err := where.Listen(net.JoinHostPort(address, "8265"))
	if err != nil {
		return "", fmt.Errorf("listen as a hostile head: %w", err)
	}
	server := hostile.Serve(listener, hostile.Web(), 0)
	t.Cleanup(func() { _ = server.Close() })
	return address, nil
}

// orders are those of the attackers, whose accounts it makes.
func (b *besieged) orders(t *testing.T, figures *live.Callers) attackers.Orders {
	t.Helper()
	orders := attackers.Orders{
		Addresses: map[string]string{attackers.REST: besiegedHost + ":8443", attackers.GRPC: besiegedHost + ":9443", attackers.Dashboards: besiegedHost + ":8444"},
		Anonymous: figures.Anonymous, Tenant: account(t, b.tenant, "editor", "edit"), Namespace: b.tenant, Clusters: []string{"demo"},
		Rounds: 1, Streams: roundStreams,
	}
	for i := range figures.Accounts {
		orders.Accounts = append(orders.Accounts, account(t, b.tenant, fmt.Sprint("nobody-", i), ""))
	}
	if figures.Seconds > 0 {
		orders.Seconds, orders.PerSecond, orders.Streams = figures.Seconds, hostileRate, hostileStreams
	}
	return orders
}

// endure has attackers obey orders, and honest callers ask until they are done.
func (b *besieged) endure(t *testing.T, orders attackers.Orders) live.Siege {
	t.Helper()
	text, err := json.Marshal(orders)
	must(t, err)
	command := b.attackers.Command(os.Args[0], "-attackers")
	var out bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), &out, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(t, b.where.Do(command.Start))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- command.Wait()
		end()
	}()
	siege := live.Siege{Waits: map[string]live.Waits{}}
	var all sync.WaitGroup
	var mutex sync.Mutex
	for listener, ask := range b.honest(t) {
		all.Go(func() {
			waits, why := asked(ctx, ask)
			mutex.Lock()
			defer mutex.Unlock()
			if siege.Waits[listener] = waits; why != nil {
				t.Logf("an honest caller at %s was not answered: %v", listener, why)
			}
		})
	}
	all.Wait()
	must(t, <-ended)
	must(t, json.Unmarshal(out.Bytes(), &siege.Report))
	return siege
}

// asked asks again and again until the context ends, whether or not there are answers, and returns how long these took and why
// the last one failed that did.
func asked(ctx context.Context, ask func(ctx context.Context, number int) error) (live.Waits, error) {
	var (
		all    sync.WaitGroup
		mutex  sync.Mutex
		times  []float64
		failed int
		why    error
	)
	pause := time.NewTicker(askedPause)
	defer pause.Stop()
	for i := 0; ; i++ {
		all.Go(func() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), askedWithin)
			defer cancel()
			began := time.Now()
			err := ask(within, i)
			mutex.Lock()
			defer mutex.Unlock()
			if times = append(times, float64(time.Since(began).Microseconds())/1000); err != nil {
				failed, why = failed+1, err
			}
		})
		select {
		case <-pause.C:
		case <-ctx.Done():
			all.Wait()
			return live.WaitsOf(times, failed), why
		}
	}
}

// honest are the requests of an honest editor, by listener. They come on connections that are kept.
func (b *besieged) honest(t *testing.T) map[string]func(ctx context.Context, number int) error {
	t.Helper()
	paths := []string{"/v1/objects?namespaces=" + b.namespace, "/apis/heliostat.dev/v1beta1/namespaces/" + b.namespace + "/computeclusters", "/v1/namespaces/" + b.namespace + "/presets"}
	settings := b.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	connection, err := grpc.NewClient("passthrough:///"+besiegedHost+":9443", grpc.WithTransportCredentials(credentials.NewTLS(settings)),
		grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) { return b.where.Dial(address) }))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	calls := heliostatv1.NewPortalClient(connection)
	dashboards := end{"https://" + besiegedHost + ":8444", b.client}
	return map[string]func(context.Context, int) error{
		attackers.REST: func(ctx context.Context, number int) error {
			_, err := b.reads(ctx, b.token, paths[number%len(paths)])
			return err
		},
		attackers.GRPC: func(ctx context.Context, _ int) error {
			_, err := calls.ListObjects(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+b.token), &heliostatv1.ListObjectsRequest{Namespaces: []string{b.namespace}})
			return err
		},
		attackers.Dashboards: func(ctx context.Context, _ int) error {
			_, err := dashboards.reads(ctx, b.token, "/"+b.namespace+"/demo/api/version")
			return err
		},
	}
}

// leadToAPIServer lets programs in the land reach the API server, at its own address.
func (l *land) leadToAPIServer(t *testing.T) {
	t.Helper()
	address := strings.TrimPrefix(shared.Config.Host, "https://")
	listener, err := l.Listen(address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			go join(inside, address)
		}
	}()
}

// join connects to an address, and carries what comes on either connection to the other, until one of them ends.
func join(inside net.Conn, address string) {
	defer func() { _ = inside.Close() }()
	outside, err := net.DialTimeout("tcp", address, tooLong)
	if err != nil {
		return
	}
	defer func() { _ = outside.Close() }()
	go func() {
		_, _ = io.Copy(outside, inside)
		_ = outside.Close() // whichever breaks ends both
	}()
	_, _ = io.Copy(inside, outside)
}

// inLand starts a command where the server is to run.
func (p *portal) inLand(command *exec.Cmd) error {
	if p.where == nil {
		return command.Start()
	}
	return p.where.Do(command.Start)
}
