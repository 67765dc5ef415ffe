package tlsterm

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

func TestEcho(t *testing.T) {
	ca := newAuthority(t)
	for _, version := range versions {
		for _, kind := range []string{"ecdsa", "rsa", "ed25519"} {
			for _, chunk := range []int{0, 1} {
				t.Run(fmt.Sprintf("%s/%s/chunk=%d", tls.VersionName(version), kind, chunk), func(t *testing.T) {
					sock := New(Options{}).NewSocket()
					if err := sock.Update([]*ir.Listener{listener("www.example.com", ca.issue(t, kind, "a", tomorrow(), "www.example.com"))}); err != nil {
						t.Fatal(err)
					}
					client, server := pipe(t)
					c := serve(newLoop(t), sock, server, echo)
					c.chunk = chunk
					c.start()
					tc := tls.Client(client, &tls.Config{ServerName: "www.example.com", RootCAs: ca.pool, MinVersion: version, MaxVersion: version, NextProtos: []string{"http/1.1"}})
					msg := bytes.Repeat([]byte("0123456789"), 5000)
					go tc.Write(msg)
					got := make([]byte, len(msg))
					if _, err := io.ReadFull(tc, got); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, msg) {
						t.Fatal("echo differs")
					}
					tc.Close()
					<-c.ended
					if c.err != io.EOF {
						t.Fatalf("ended with %v, want EOF", c.err)
					}
				})
			}
		}
	}
}
