package admin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/dataplane/ir"
)

// chain returns a self-signed certificate in PEM.
func chain(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, "*." + name},
		IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}, NotAfter: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestDump(t *testing.T) {
	second := time.Second
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("rubbish")})
	got := string(appendSnapshot(nil, &ir.Snapshot{
		Sockets: []*ir.Socket{{
			Name: "0.0.0.0:443", Addr: netip.MustParseAddrPort("0.0.0.0:443"), Protocol: ir.ProtocolHTTPS,
			Listeners: []*ir.Listener{{
				Name: "shop/edge/https",
				TLS: &ir.TLS{Certificates: []*ir.Certificate{
					{Name: "shop/cert", Chain: append(chain(t, "shop.example"), broken...), Key: ir.NewSecret([]byte("LEAK"))},
					{Name: "shop/none", Chain: []byte("LEAK")},
				}},
				Routes: []*ir.Route{{
					Name: "shop/cart", Hostnames: []string{""},
					Rules: []*ir.Rule{{Timeouts: ir.Timeouts{Request: &second}}},
				}},
			}},
		}},
	}))
	for _, want := range []string{
		`"addr": "0.0.0.0:443"`, `"protocol": "HTTPS"`, `"request": "1s"`, `"hostnames": [`,
		`"subject": "CN=shop.example"`, `"*.shop.example"`, `"192.0.2.1"`, `"notAfter": "2027-01-02T03:04:05Z"`,
		`"error": "x509:`, `"chain": []`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, secret := range []string{"LEAK", "TEVBSw", "PRIVATE KEY", "BEGIN"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// fill sets everything that v holds; texts are numbered, bytes must not leak.
func fill(t *testing.T, v reflect.Value, texts *[]string) {
	t.Helper()
	switch v.Interface().(type) {
	case netip.AddrPort:
		v.Set(reflect.ValueOf(netip.MustParseAddrPort("192.0.2.1:80")))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 0)))
		return
	case ir.Secret:
		v.Set(reflect.ValueOf(ir.NewSecret([]byte("LEAK"))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), texts)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), texts)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("LEAK"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), texts)
		fill(t, v.Index(1), texts)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, texts)
		fill(t, value, texts)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		s := fmt.Sprintf("text-%d<\"\xff", len(*texts))
		*texts = append(*texts, s)
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("ir has a %s, which neither this test nor the dump knows", v.Type())
	}
}

// Whatever ir holds, now or later, is dumped: valid JSON that has every text, and
// not one byte of what is a secret or may be one.
func TestDumpOfEverything(t *testing.T) {
	var s ir.Snapshot
	var texts []string
	fill(t, reflect.ValueOf(&s).Elem(), &texts)
	got := appendSnapshot(nil, &s)
	var tree any
	if err := json.Unmarshal(got, &tree); err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	seen := make(map[string]bool)
	leaves(tree, seen)
	for _, s := range texts {
		if !seen[strings.ToValidUTF8(s, "\uFFFD")] {
			t.Errorf("%q is not shown", s)
		}
	}
	if len(texts) < 30 {
		t.Errorf("only %d texts were filled in", len(texts))
	}
	if strings.Contains(string(got), "LEAK") || strings.Contains(string(got), "TEVBS") {
		t.Error("secret bytes are printed")
	}
	if !strings.Contains(string(got), "192.0.2.1:80") || !strings.Contains(string(got), "2023-11-14T22:13:20Z") {
		t.Errorf("addresses or times are not shown as text")
	}
}

func leaves(v any, seen map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			seen[k] = true
			leaves(e, seen)
		}
	case []any:
		for _, e := range x {
			leaves(e, seen)
		}
	case string:
		seen[x] = true
	}
}

func TestDumpValues(t *testing.T) {
	type node struct {
		Next   *node
		hidden int
	}
	loop := &node{hidden: 1}
	loop.Next = loop
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"nil":           {nil, `null`},
		"nil pointer":   {(*int)(nil), `null`},
		"nil marshaler": {(*ir.Secret)(nil), `null`},
		"secret":        {ir.NewSecret([]byte("LEAK")), `"[redacted]"`},
		"bytes":         {[]byte("LEAK"), `"[4 bytes]"`},
		"byte array":    {[4]byte{'L'}, `"[4 bytes]"`},
		"array":         {[2]int{1, -2}, `[1,-2]`},
		"enumeration":   {ir.MatchPrefix, `"PathPrefix"`},
		"duration":      {1500 * time.Millisecond, `"1.5s"`},
		"map":           {map[string]uint8{"b": 2, "a\n": 1}, `{"a\n":1,"b":2}`},
		"float":         {0.25, `"0.25"`},
		"bool":          {true, `true`},
		"function":      {func() {}, `"func()"`},
		"interface":     {[]any{1, "x", nil}, `[1,"x",null]`},
		"empty fields":  {node{}, `{}`},
		"empty structs": {struct {
			Created time.Time
			Pool    ir.Pool
			N       int
		}{}, `{"n":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, string(appendValue(nil, reflect.ValueOf(c.value), 0))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := string(appendValue(nil, reflect.ValueOf(loop), 0)); !json.Valid([]byte(got)) || len(got) > 1000 {
		t.Errorf("a cycle gives %q", got)
	}
}

func TestLowerFirst(t *testing.T) {
	for in, want := range map[string]string{"": "", "A": "a", "TLS": "tls", "AddrPort": "addrPort", "TLSName": "tlsName", "Name": "name"} {
		if got := lowerFirst(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
