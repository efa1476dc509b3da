package route

import "github.com/heliostat-dev/heliostat/ray-operator/naming"

// clusters and services stand before namespace and name in paths on the origin that all objects share. Clusters need
// nothing there, unless their namespace is called services.
const clusters, services = "/-/clusters", "/services"

// HostOf returns the host that an object has for itself, and nothing where there is no wildcard.
func (s Site) HostOf(kind Kind, namespace, name string) string {
	switch {
	case s.Wildcard == "":
		return ""
	case kind == Service:
		return naming.ServiceHost(namespace, name) + "." + s.Wildcard
	}
	return naming.ClusterHost(namespace, name) + "." + s.Wildcard
}

// AddressOf returns where browsers open an object: at its own host, or else by a path on the shared origin.
func (s Site) AddressOf(shared string, kind Kind, namespace, name string) string {
	if host := s.HostOf(kind, namespace, name); host != "" {
		return "https://" + host + "/"
	}
	before := ""
	switch {
	case kind == Service:
		before = services
	case namespace == services[1:]:
		before = clusters
	}
	return shared + before + "/" + namespace + "/" + name + "/"
}
