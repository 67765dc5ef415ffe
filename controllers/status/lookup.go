package status

import (
	"sort"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find returns the object of a sorted list, or the zero value.
func find[T client.Object](list []T, namespace, name string) T {
	i := sort.Search(len(list), func(i int) bool {
		return !lessName(client.ObjectKeyFromObject(list[i]), namespace, name)
	})
	if i < len(list) && list[i].GetName() == name && list[i].GetNamespace() == namespace {
		return list[i]
	}
	var none T
	return none
}

// lessName is the order of compile.Less.
func lessName(a types.NamespacedName, namespace, name string) bool {
	if a.Namespace == namespace {
		return a.Name < name
	}
	return a.Namespace+"/" < namespace+"/"
}
