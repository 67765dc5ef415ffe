package kube

import (
	"reflect"
	"unique"
)

// word returns s in the memory that equal ones have: namespaces, types and reasons
// come again in thousands of objects, and each one was decoded for itself.
func word[S ~string](s S) S {
	if s == "" {
		return s
	}
	return S(unique.Make(string(s)).Value())
}

// words does so with all texts that a pointer leads to, but for keys and values of
// maps.
func words(pointer any) { shareWords(reflect.ValueOf(pointer)) }

func shareWords(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(word(v.String()))
		}
	case reflect.Pointer:
		shareWords(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() { // it is exported
				shareWords(f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			shareWords(v.Index(i))
		}
	}
}
