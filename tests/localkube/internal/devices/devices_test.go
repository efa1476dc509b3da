package devices

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// limit is generous: it only ends a test that hangs.
const limit = 20 * time.Second

// kubelet is the kubelet's side of the plugin API: it looks for sockets in its
// registry, asks each who it is, and takes its list of devices.
type kubelet struct {
	t   *testing.T
	ctx context.Context
	dir string
}

// found is a plugin that a kubelet has registered.
type found struct {
	plugin  deviceplugin.DevicePluginClient
	stream  grpc.ServerStreamingClient[deviceplugin.ListAndWatchResponse]
	devices []string
}

func (k kubelet) register(resource string) found {
	k.t.Helper()
	socket := filepath.Join(k.dir, "plugins_registry", strings.ReplaceAll(resource, "/", "_")+".sock")
	asked := registration.NewRegistrationClient(k.dial(socket))
	info, err := asked.GetInfo(k.ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		k.t.Fatalf("ask %s: %v", socket, err)
	}
	want := registration.PluginInfo{Type: "DevicePlugin", Name: resource, SupportedVersions: []string{"v1beta1"}}
	if info.Type != want.Type || info.Name != want.Name || info.Endpoint != want.Endpoint || !cmp.Equal(info.SupportedVersions, want.SupportedVersions) {
		k.t.Fatalf("plugin says it is %v, want %v", info, &want)
	}
	f := found{plugin: deviceplugin.NewDevicePluginClient(k.dial(socket))}
	if f.stream, err = f.plugin.ListAndWatch(k.ctx, &deviceplugin.Empty{}); err != nil {
		k.t.Fatalf("list devices of %s: %v", resource, err)
	}
	list, err := f.stream.Recv()
	if err != nil {
		k.t.Fatalf("list devices of %s: %v", resource, err)
	}
	for _, d := range list.Devices {
		f.devices = append(f.devices, d.ID+" "+d.Health)
	}
	if _, err := asked.NotifyRegistrationStatus(k.ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		k.t.Fatalf("tell %s that it is registered: %v", resource, err)
	}
	return f
}

func (k kubelet) dial(socket string) *grpc.ClientConn {
	k.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}))
	if err != nil {
		k.t.Fatalf("dial %s: %v", socket, err)
	}
	k.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// run starts Run and returns a kubelet beside it, and a stop that waits.
func run(t *testing.T, resources map[string]int, dir string) (kubelet, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- Run(running, Config{KubeletDir: dir, Resources: resources, Log: slog.New(slog.DiscardHandler)})
	}()
	return kubelet{t, ctx, dir}, func() {
		t.Helper()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v, want nil", err)
		}
	}
}

// shortDir is a directory whose sockets' paths fit into the kernel's 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestEachResourceIsAPluginOfItsOwn(t *testing.T) {
	k, stop := run(t, map[string]int{"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 1, "nvidia.com/gpu.shared": 3}, shortDir(t))
	for resource, want := range map[string][]string{
		"nvidia.com/gpu":        {"gpu-0 Healthy", "gpu-1 Healthy"},
		"nvidia.com/mig-1g.5gb": {"mig-1g.5gb-0 Healthy"},
		"nvidia.com/gpu.shared": {"gpu.shared-0 Healthy", "gpu.shared-1 Healthy", "gpu.shared-2 Healthy"},
	} {
		if diff := cmp.Diff(want, k.register(resource).devices); diff != "" {
			t.Errorf("devices of %s (-want +got):\n%s", resource, diff)
		}
	}
	stop()
}

func TestAllocateNamesTheDevicesToTheContainer(t *testing.T) {
	k, stop := run(t, map[string]int{"nvidia.com/gpu": 3}, shortDir(t))
	gpu := k.register("nvidia.com/gpu")
	response, err := gpu.plugin.Allocate(k.ctx, &deviceplugin.AllocateRequest{ContainerRequests: []*deviceplugin.ContainerAllocateRequest{
		{DevicesIds: []string{"gpu-2", "gpu-0"}}, {DevicesIds: []string{"gpu-1"}},
	}})
	if err != nil {
		t.Fatalf("allocate: %v", err)
	}
	var got []map[string]string
	for _, c := range response.ContainerResponses {
		got = append(got, c.Envs)
	}
	want := []map[string]string{{"NVIDIA_VISIBLE_DEVICES": "gpu-2,gpu-0"}, {"NVIDIA_VISIBLE_DEVICES": "gpu-1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	_, err = gpu.plugin.Allocate(k.ctx, &deviceplugin.AllocateRequest{ContainerRequests: []*deviceplugin.ContainerAllocateRequest{
		{DevicesIds: []string{"gpu-3"}},
	}})
	if err == nil || !strings.Contains(err.Error(), "gpu-3") {
		t.Errorf("a device that there is not was allocated, error %v", err)
	}
	stop()
}

func TestARestartedKubeletRegistersAgain(t *testing.T) {
	k, stop := run(t, map[string]int{"nvidia.com/gpu": 1}, shortDir(t))
	k.register("nvidia.com/gpu")
	if diff := cmp.Diff([]string{"gpu-0 Healthy"}, k.register("nvidia.com/gpu").devices); diff != "" {
		t.Errorf("devices for the second kubelet (-want +got):\n%s", diff)
	}
	stop()
}

func TestARestartedPluginReplacesTheSocketOfOneThatWasKilled(t *testing.T) {
	dir := shortDir(t)
	registry := filepath.Join(dir, "plugins_registry")
	if err := os.Mkdir(registry, 0o755); err != nil {
		t.Fatal(err)
	}
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(registry, "nvidia.com_gpu.sock")})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	k, stop := run(t, map[string]int{"nvidia.com/gpu": 1}, dir)
	k.register("nvidia.com/gpu")
	stop()
}

func TestTheEndIsSeenByTheKubelet(t *testing.T) {
	dir := shortDir(t)
	k, stop := run(t, map[string]int{"nvidia.com/gpu": 1}, dir)
	gpu := k.register("nvidia.com/gpu")
	stop()
	if _, err := gpu.stream.Recv(); err == nil {
		t.Error("the list of devices goes on after Run ended")
	}
	left, err := os.ReadDir(filepath.Join(dir, "plugins_registry"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the registry: %v, error %v", left, err)
	}
}

func TestBadResourcesAreRefused(t *testing.T) {
	for _, resources := range []map[string]int{
		{"gpu": 1}, {"/gpu": 1}, {"nvidia.com/": 1}, {"nvidia.com/gpu": 0}, {"nvidia.com/gpu": -1},
	} {
		if err := Run(t.Context(), Config{KubeletDir: shortDir(t), Resources: resources}); err == nil {
			t.Errorf("%v was taken", resources)
		}
	}
}

func TestAPluginThatCannotServeEndsAll(t *testing.T) {
	long := filepath.Join(shortDir(t), strings.Repeat("x", 90))
	err := Run(t.Context(), Config{KubeletDir: long, Resources: map[string]int{"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1}})
	if err == nil || !strings.Contains(err.Error(), "offer nvidia.com/") {
		t.Errorf("Run with a socket's path that is too long: %v", err)
	}
}
