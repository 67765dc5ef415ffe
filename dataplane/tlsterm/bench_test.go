package tlsterm

import (
	"crypto/tls"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// BenchmarkWrite encrypts pieces of one size.
func BenchmarkWrite(b *testing.B) {
	benchVersions(b, func(b *testing.B, cfg *tls.Config, sock *Socket) {
		for _, size := range []int{500, 16 << 10, 64 << 10} {
			b.Run(fmt.Sprint(size), func(b *testing.B) {
				l, _ := open(b, sock, cfg)
				l.s.carrier = silent{}
				l.s.sent = growthBytes
				p := make([]byte, size)
				for range 50 {
					l.s.Write(p) // until the records have grown
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					l.s.Write(p)
				}
			})
		}
	})
}

// BenchmarkRead decrypts pieces of one size; each is one Feed.
func BenchmarkRead(b *testing.B) {
	benchVersions(b, func(b *testing.B, cfg *tls.Config, sock *Socket) {
		for _, size := range []int{500, 16 << 10, 64 << 10} {
			b.Run(fmt.Sprint(size), func(b *testing.B) {
				l, c := open(b, sock, cfg)
				batch := max(1, (4<<20)/size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				var in [][]byte
				for i := 0; i < b.N; i++ {
					if len(in) == 0 {
						b.StopTimer()
						in = records(l, c, batch, size)
						b.StartTimer()
					}
					if err := l.s.Feed(in[0]); err != nil {
						b.Fatal(err)
					}
					in = in[1:]
					for {
						n, err := l.s.Read(l.scratch)
						if err != nil {
							b.Fatal(err)
						}
						if n == 0 {
							break
						}
					}
				}
			})
		}
	})
}

// BenchmarkHandshake is a handshake of both ends: the client's half costs about
// as much as the server's.
func BenchmarkHandshake(b *testing.B) {
	ca := newAuthority(b)
	for _, kind := range []string{"ecdsa", "rsa"} {
		for _, resume := range []bool{false, true} {
			for _, version := range versions {
				name := fmt.Sprintf("%s/%s/resume=%v", kind, strings.ReplaceAll(tls.VersionName(version), " ", ""), resume)
				b.Run(name, func(b *testing.B) {
					sock := New(Options{}).NewSocket()
					if err := sock.Update([]*ir.Listener{listener("", ca.issue(b, kind, "a", tomorrow(), "www.example.com"))}); err != nil {
						b.Fatal(err)
					}
					cfg := &tls.Config{ServerName: "www.example.com", InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}
					if resume {
						cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
					}
					l, c := open(b, sock, cfg)
					l.takeTicket(b, c)
					b.ReportAllocs()
					start := cpuTime(b)
					defer func() { b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/1e3, "cpu-us/op") }()
					for b.Loop() {
						l, c := open(b, sock, cfg)
						if l.s.Resumed() != resume {
							b.Fatalf("resumed: %v", l.s.Resumed())
						}
						if resume {
							l.takeTicket(b, c) // a ticket is used once
						}
					}
				})
			}
		}
	}
}

// BenchmarkIdleSession reports the heap that each of 2,000 idle sessions keeps.
func BenchmarkIdleSession(b *testing.B) {
	benchVersions(b, func(b *testing.B, cfg *tls.Config, sock *Socket) {
		for _, use := range []struct {
			name string
			f    func(*link, *tls.Conn)
		}{
			{"handshake only", func(*link, *tls.Conn) {}},
			{"one request", request},
			{"one MiB uploaded", func(l *link, c *tls.Conn) {
				l.keep = false
				l.do(func() { c.Write(make([]byte, 1<<20)) })
			}},
		} {
			b.Run(use.name, func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(heap(b, 2000, sock, cfg, use.f), "B/session")
				}
			})
		}
	})
}

// cpuTime is the processor time of this process: on a busy machine it tells
// more than the clock.
func cpuTime(b *testing.B) int64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}

func benchVersions(b *testing.B, f func(b *testing.B, cfg *tls.Config, sock *Socket)) {
	ca := newAuthority(b)
	for _, v := range versions {
		b.Run(strings.ReplaceAll(tls.VersionName(v), " ", ""), func(b *testing.B) {
			f(b, ca.config(v), newSocket(b, ca.issue(b, "ecdsa", "a", tomorrow(), "www.example.com")))
		})
	}
}
