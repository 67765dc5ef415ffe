// Command reverseproxy is net/http/httputil's ReverseProxy with an upstream pool
// that is as large as need be: what a Go program gets without further work.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	listenTLS := flag.String("listen-tls", "", "address to listen on with TLS; empty for none")
	cert := flag.String("cert", "", "PEM file of the certificate")
	key := flag.String("key", "", "PEM file of its key")
	upstream := flag.String("upstream", "http://127.0.0.1:9000", "URL to forward to")
	flag.Parse()

	target, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 4096,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
	}
	if *listenTLS != "" {
		s := &http.Server{Addr: *listenTLS, Handler: proxy, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
		go func() { log.Fatal(s.ListenAndServeTLS(*cert, *key)) }()
	}
	s := &http.Server{Addr: *listen, Handler: proxy}
	log.Fatal(s.ListenAndServe())
}
