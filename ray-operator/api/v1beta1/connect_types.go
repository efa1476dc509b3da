package v1beta1

// ConnectSummary holds lines for a shell inside the Kubernetes cluster, such as that of another pod. None contains a token or a key.
type ConnectSummary struct {
	// token sets the token that Ray's programs send. It needs the right to read the Secret, and is absent without authentication.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Token string `json:"token,omitempty"`
	// certificate writes ca.crt, for ray job submit --verify ca.crt. It needs the right to read the Secret, and is absent without encryption.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Certificate string `json:"certificate,omitempty"`
	// jobs sets the address for ray job, and without encryption for the state API.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Jobs string `json:"jobs,omitempty"`
	// client sets the address for ray.init(), by Ray Client. It is absent with encryption, which asks clients for a certificate of the cluster.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	// +optional
	Client string `json:"client,omitempty"`
}
