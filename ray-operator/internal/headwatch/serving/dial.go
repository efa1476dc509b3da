package serving

import "github.com/heliostat-dev/heliostat/ray-operator/headclient"

// Dial is the Dialer for real heads.
func Dial(at Place) (Head, error) {
	head, err := headclient.DialServe(at.Address, headclient.Options{Token: at.Token})
	if err != nil {
		return nil, err // not a nil client in an interface that is not nil
	}
	return head, nil
}
