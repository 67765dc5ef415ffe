package ir_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestHash(t *testing.T) {
	if a, b := valid().Hash(), valid().Hash(); a != b || len(a) != 16 {
		t.Errorf("two equal snapshots: %q and %q", a, b)
	}
	big := &ir.Snapshot{}
	for i := range 3000 {
		big.Clusters = append(big.Clusters, &ir.Cluster{Name: fmt.Sprintf("default/%05d:80", i)})
	}
	before := big.Hash()
	big.Clusters[0].Name = "default/0000:80"
	if big.Hash() == before {
		t.Error("the start of a large snapshot does not count")
	}
}

// TestHashCounts changes every field that there is, one by one.
func TestHashCounts(t *testing.T) {
	fields := 0
	seen := make(map[string]string)
	walk(t, reflect.ValueOf(valid()).Elem(), "", func(path string, change func(*ir.Snapshot)) {
		fields++
		s := valid()
		change(s)
		h := s.Hash()
		if h == valid().Hash() {
			t.Errorf("%s does not count", path)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s make the same hash", path, other)
		}
		seen[h] = path
	})
	if fields < 60 {
		t.Errorf("only %d fields were tried", fields)
	}
}

// walk visits each leaf below a value, with a function that changes it in another
// snapshot of the same shape.
func walk(t *testing.T, v reflect.Value, path string, visit func(string, func(*ir.Snapshot)), steps ...func(reflect.Value) reflect.Value) {
	t.Helper()
	leaf := func(change func(reflect.Value)) {
		visit(path, func(s *ir.Snapshot) {
			at := reflect.ValueOf(s).Elem()
			for _, step := range steps {
				at = step(at)
			}
			change(at)
		})
	}
	down := func(name string, next reflect.Value, step func(reflect.Value) reflect.Value) {
		walk(t, next, path+name, visit, append(append([]func(reflect.Value) reflect.Value(nil), steps...), step)...)
	}
	switch v.Interface().(type) {
	case netip.AddrPort:
		// Its text is another field of an endpoint; that of a socket counts.
		if path[len(path)-5:] != ".Addr" {
			leaf(func(v reflect.Value) {
				was := v.Interface().(netip.AddrPort)
				now := netip.AddrPort{}
				if !was.IsValid() {
					now = netip.MustParseAddrPort("1.2.3.4:5")
				}
				v.Set(reflect.ValueOf(now))
			})
			return
		}
		leaf(func(v reflect.Value) { v.Set(reflect.ValueOf(netip.MustParseAddrPort("1.2.3.4:5"))) })
		return
	case netip.Prefix:
		leaf(func(v reflect.Value) { v.Set(reflect.ValueOf(netip.MustParsePrefix("1.2.0.0/16"))) })
		return
	case time.Time:
		leaf(func(v reflect.Value) { v.Set(reflect.ValueOf(time.Unix(7, 8))) })
		return
	case ir.Secret:
		leaf(func(v reflect.Value) { v.Set(reflect.ValueOf(ir.NewSecret([]byte("other")))) })
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			leaf(func(v reflect.Value) { v.Set(reflect.New(v.Type().Elem())) })
			return
		}
		down("", v.Elem(), func(v reflect.Value) reflect.Value { return v.Elem() })
	case reflect.Struct:
		for i := range v.NumField() {
			down("."+v.Type().Field(i).Name, v.Field(i), func(v reflect.Value) reflect.Value { return v.Field(i) })
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			leaf(func(v reflect.Value) { v.SetBytes([]byte("other")) })
			return
		}
		for i := range v.Len() {
			down(fmt.Sprintf("[%d]", i), v.Index(i), func(v reflect.Value) reflect.Value { return v.Index(i) })
		}
		if v.Len() > 0 {
			leaf(func(v reflect.Value) { v.Set(v.Slice(0, v.Len()-1)) })
		}
	case reflect.String:
		leaf(func(v reflect.Value) { v.SetString(v.String() + "x") })
	case reflect.Bool:
		leaf(func(v reflect.Value) { v.SetBool(!v.Bool()) })
	case reflect.Float64:
		leaf(func(v reflect.Value) { v.SetFloat(v.Float() + 1) })
	case reflect.Int, reflect.Int64:
		leaf(func(v reflect.Value) { v.SetInt(v.Int() + 1) })
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		leaf(func(v reflect.Value) { v.SetUint(v.Uint() + 1) })
	default:
		t.Fatalf("%s: a %s", path, v.Kind())
	}
}

func TestApplyResult(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    ir.ApplyResult
		ok   bool
	}{
		{"all is well", ir.ApplyResult{}, true},
		{"refused", ir.ApplyResult{Err: fmt.Errorf("x")}, false},
		{"a socket failed", ir.ApplyResult{Sockets: map[string]error{"a": fmt.Errorf("x")}}, false},
	} {
		if tt.r.OK() != tt.ok {
			t.Errorf("%s: OK is %v", tt.name, tt.r.OK())
		}
	}
}
