package console

import (
	"strings"

	"github.com/spf13/pflag"
)

// Server is Heliostat's server as a user names it.
type Server struct {
	// URL is its address; without one there is no server.
	URL string
	// Authority is a file with the authority of its certificate, empty for those that the machine trusts.
	Authority string
	// Token is sent in place of the kubeconfig's, where it is not empty. It comes from the environment alone: others see
	// command lines.
	Token string
}

// ServerOf returns the server that variables name.
func ServerOf(environ []string) Server {
	var s Server
	for _, one := range environ {
		switch name, value, _ := strings.Cut(one, "="); name {
		case "HELIOSTAT_SERVER":
			s.URL = value
		case "HELIOSTAT_SERVER_CA":
			s.Authority = value
		case "HELIOSTAT_TOKEN":
			s.Token = value
		}
	}
	return s
}

// AddServer adds the flags that name the server to those of a command that can use it.
func (c *Console) AddServer(flags *pflag.FlagSet) {
	flags.Var(text{&c.Server.URL}, "server", "address of Heliostat's server, used instead of a port-forward; "+
		"default: HELIOSTAT_SERVER")
	flags.Var(text{&c.Server.Authority}, "server-ca", "file with the certificate authority of the server; default: "+
		"HELIOSTAT_SERVER_CA")
}

// text is a flag whose default is a variable of the environment, which no reference shows.
type text struct{ value *string }

// String implements pflag.Value.
func (t text) String() string { return "" }

// Set implements pflag.Value.
func (t text) Set(value string) error {
	*t.value = value
	return nil
}

// Type implements pflag.Value.
func (t text) Type() string { return "string" }
