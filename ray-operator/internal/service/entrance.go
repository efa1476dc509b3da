package service

// parts says why the proxies of two versions cannot stand behind one Service, empty if they can: it leads to one port,
// where clients speak one protocol, and both stand behind it while requests go over.
func parts(good, target Revision) string {
	have, want := good.ports(), target.ports()
	switch {
	case have.HTTP != want.HTTP, have.GRPC != want.GRPC && have.GRPC != 0 && want.GRPC != 0:
		return "the ports of http_options and grpc_options cannot change while the service runs; set them back, or suspend the service for the change"
	case good.Config.HTTPS != target.Config.HTTPS:
		return "http_options.ssl_certfile cannot come or go while the service runs, because clients would speak HTTP to proxies of HTTPS; set it back, or suspend the service for the change"
	}
	return ""
}
