package v1beta1

// ConnectStatus holds lines for a shell inside the Kubernetes cluster, such as that of another pod. None contains a token or a key.
type ConnectStatus struct {
	// token sets the token that Ray's programs send. It needs the right to read the Secret, and is absent without authentication.
	// +optional
	Token string `json:"token,omitempty"`
	// certificate writes ca.crt, for ray job submit --verify ca.crt. It needs the right to read the Secret, and is absent without encryption.
	// +optional
	Certificate string `json:"certificate,omitempty"`
	// jobs sets the address for ray job, and without encryption for the state API.
	// +optional
	Jobs string `json:"jobs,omitempty"`
	// client sets the address for ray.init(), by Ray Client. It is absent with encryption, which asks clients for a certificate of the cluster.
	// +optional
	Client string `json:"client,omitempty"`
}
