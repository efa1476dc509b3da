package naming

import "strings"

// ClusterHost returns the DNS label by which a cluster is reached below a wildcard: <name>--<namespace> where neither
// holds "--" and both fit, else a cut name with a long hash.
//
// A label is looked up and never split, so it need only be different for each cluster. The plain form has exactly one "--"
// and the other has none. A plain "xn--" would be read as the encoding of another name.
func ClusterHost(namespace, name string) string {
	plain := name + "--" + namespace
	isDouble := strings.Contains(name, "--") || strings.Contains(namespace, "--")
	if !isDouble && len(plain) <= maxLabel && name != "xn" {
		return plain
	}
	return host("cluster", namespace, name)
}

// ServiceHost returns the DNS label by which a service is reached below a wildcard: a cut name with a long hash. It is the
// label of no cluster.
func ServiceHost(namespace, name string) string { return host("service", namespace, name) }

// host returns a name of one object, without "--".
func host(kind, namespace, name string) string {
	base := name + "-" + namespace
	for strings.Contains(base, "--") {
		base = strings.ReplaceAll(base, "--", "-")
	}
	base = strings.TrimRight(base[:min(len(base), maxLabel-1-longHash)], "-")
	return base + "-" + hash("host", kind, namespace, name)[:longHash]
}
