package proxy

import (
	"io"
	"net/http"
)

// maxLingers is how many times the largest upload a body may have that is read although it was refused.
const maxLingers = 4

// refuseWhole refuses a request, and then reads its body, of which it keeps none. Many clients, Ray's among them, read no
// answer before they have sent all, and take a connection that ends before that for broken.
func (p *Proxy) refuseWhole(w http.ResponseWriter, r *http.Request, x *exchange, err error) {
	if !p.lingers(r, x) {
		p.refuse(w, r, err)
		return
	}
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // every server of HTTP/1.1 has it
	p.refuse(w, r, err)
	giveBack, err := p.places.uploads.Take(x.holder())
	if err != nil {
		return // as many are under way as there can be
	}
	defer giveBack()
	_ = control.Flush()                                                                      // reading finds out whether its caller has gone
	_, _ = io.Copy(io.Discard, &paced{ReadCloser: r.Body, control: control, clock: p.Clock}) // however it ends, it is over
}

// lingers reports whether the body of a request is read that was refused: a large one of a caller who is known.
func (p *Proxy) lingers(r *http.Request, x *exchange) bool {
	return x.caller != nil && r.ProtoMajor == 1 && r.ContentLength > smallBody && r.ContentLength/maxLingers <= p.MaxUpload
}
