// Package devices offers devices that do not exist to one node's kubelet, so
// that pods can ask for nvidia.com/gpu, MIG slices or shared GPUs and be counted,
// scheduled and refused as on real hardware.
//
// In come names of resources with a number of devices each. Out goes one device
// plugin server for each name, on a socket in <kubelet>/plugins_registry: the
// kubelet finds it there by itself, also after a restart, and asks who it is.
// (The older way, calling the kubelet at device-plugins/kubelet.sock, has a path
// compiled in, outside its root directory, and leaves restarts to the plugin.)
//
// It must never touch a device or a driver: a container gets an environment
// variable and nothing else.
package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registryDir is where a kubelet looks for plugins, below its root directory.
const registryDir = "plugins_registry"

// Config says which devices a node has.
type Config struct {
	// KubeletDir is the kubelet's --root-dir. With the name of a resource it
	// has to fit into the 107 bytes of a socket's path.
	KubeletDir string
	// Resources maps the name of an extended resource, with its domain, such
	// as nvidia.com/mig-1g.5gb, to the number of devices, at least 1.
	Resources map[string]int
	// Log receives what the kubelet says about each registration.
	Log *slog.Logger
}

// Run offers the devices until ctx ends and then returns nil. The kubelet need
// not run yet. When Run ends, the kubelet counts the devices as unhealthy: the
// node's allocatable falls to 0, pods that hold one keep it. An error means
// that a resource is not valid or its socket could not be served.
func Run(ctx context.Context, cfg Config) error {
	dir := filepath.Join(cfg.KubeletDir, registryDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make plugin directory: %w", err)
	}
	var plugins []*plugin
	for resource, count := range cfg.Resources {
		if domain, name, ok := strings.Cut(resource, "/"); !ok || domain == "" || name == "" || count < 1 {
			return fmt.Errorf("offer %d of %q: want a name like nvidia.com/gpu and a number above 0", count, resource)
		}
		plugins = append(plugins, newPlugin(dir, resource, count, cfg.Log))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	failures := make([]error, len(plugins))
	for i, p := range plugins {
		all.Go(func() {
			failures[i] = p.serve(ctx)
			// One that cannot go on takes the others with it: half of the
			// devices would look like a scheduler's fault.
			cancel()
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// plugin is the device plugin of one resource.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer

	resource string
	socket   string
	devices  []string
	log      *slog.Logger
}

func newPlugin(dir, resource string, count int, log *slog.Logger) *plugin {
	_, name, _ := strings.Cut(resource, "/")
	p := &plugin{
		resource: resource,
		socket:   filepath.Join(dir, strings.ReplaceAll(resource, "/", "_")+".sock"),
		log:      log,
	}
	for i := range count {
		p.devices = append(p.devices, fmt.Sprintf("%s-%d", name, i))
	}
	return p
}

// serve answers the kubelet until ctx ends.
func (p *plugin) serve(ctx context.Context) error {
	// A process that was killed leaves its socket, and the kubelet takes a new
	// one for a new plugin only if the old one was removed.
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old socket of %s: %w", p.resource, err)
	}
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		return fmt.Errorf("offer %s: %w", p.resource, err)
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	registration.RegisterRegistrationServer(server, p)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve devices of %s: %w", p.resource, err)
	}
	return nil
}

// GetInfo tells a kubelet that has found the socket who is behind it. It gives no
// endpoint, which means the same socket: the kubelet may see it at another path.
func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.DevicePlugin,
		Name:              p.resource,
		SupportedVersions: []string{deviceplugin.Version},
	}, nil
}

// NotifyRegistrationStatus takes the kubelet's verdict.
func (p *plugin) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		p.log.Info("devices registered", "resource", p.resource, "count", len(p.devices))
	} else {
		p.log.Error("devices refused by the kubelet", "resource", p.resource, "error", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// GetDevicePluginOptions asks for no optional calls.
func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices, all healthy, once: they never change. The
// stream then stays open, since its end would mean that the plugin is gone.
func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	response := &deviceplugin.ListAndWatchResponse{}
	for _, id := range p.devices {
		response.Devices = append(response.Devices, &deviceplugin.Device{ID: id, Health: deviceplugin.Healthy})
	}
	if err := stream.Send(response); err != nil {
		return fmt.Errorf("list devices of %s: %w", p.resource, err)
	}
	<-stream.Context().Done()
	return nil
}

// Allocate names the chosen devices in the container's NVIDIA_VISIBLE_DEVICES,
// the variable that NVIDIA's container runtime reads.
func (p *plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	response := &deviceplugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		for _, id := range container.DevicesIds {
			if !slices.Contains(p.devices, id) {
				return nil, fmt.Errorf("allocate %s: no device %q", p.resource, id)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, &deviceplugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}
