package console

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestServer_IsThatOfFlagsBeforeVariables(t *testing.T) {
	variables := []string{"HOME=/root", "HELIOSTAT_SERVER=https://a", "HELIOSTAT_SERVER_CA=a.crt", "HELIOSTAT_TOKEN=t=t"}
	for name, c := range map[string]struct {
		environ, args []string
		want          Server
	}{
		"neither":   {nil, nil, Server{}},
		"variables": {variables, nil, Server{URL: "https://a", Authority: "a.crt", Token: "t=t"}},
		"flags":     {variables, []string{"--server", "https://b", "--server-ca="}, Server{URL: "https://b", Token: "t=t"}},
	} {
		t.Run(name, func(t *testing.T) {
			console := &Console{Server: ServerOf(c.environ)}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			console.AddServer(flags)
			if err := flags.Parse(c.args); err != nil || console.Server != c.want {
				t.Errorf("it is %+v, %v", console.Server, err)
			}
		})
	}
}
