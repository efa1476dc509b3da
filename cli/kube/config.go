package kube

import (
	"maps"
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// ReadConfig returns how the API server is reached, by the kubeconfig and the flags.
func ReadConfig(access *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := access.ToRESTConfig()
	if err == nil {
		return config, nil
	}
	if raw, err := access.ToRawKubeConfigLoader().RawConfig(); err == nil {
		context, user := ptr.Deref(access.Context, ""), ptr.Deref(access.AuthInfoName, "")
		if context == "" {
			context = raw.CurrentContext
		}
		if raw.Contexts[context] == nil && context != "" {
			return nil, hasNo("context", context, slices.Sorted(maps.Keys(raw.Contexts)))
		}
		if raw.AuthInfos[user] == nil && user != "" {
			return nil, hasNo("user", user, slices.Sorted(maps.Keys(raw.AuthInfos)))
		}
	}
	return nil, outcome.Errorf(outcome.Usage, "read the kubeconfig: %w; check KUBECONFIG or --kubeconfig", err)
}

// hasNo says that the kubeconfig has no part of a name, and which one was probably meant.
func hasNo(what, name string, known []string) error {
	return outcome.Errorf(outcome.Usage, "the kubeconfig has no %s %q; %s", what, name, spelling.Remedy(name, known))
}
