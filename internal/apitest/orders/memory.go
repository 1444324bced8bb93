package orders

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clone copies what the manager remembers, whatever its type, including unexported fields.
// API objects and functions are shared, and locks are new.
func Clone[T any](of T) T {
	from := reflect.New(reflect.TypeFor[T]()).Elem()
	from.Set(reflect.ValueOf(&of).Elem())
	into := reflect.New(from.Type()).Elem()
	cloneValue(from, into)
	return into.Interface().(T)
}

var (
	typeOfTime   = reflect.TypeFor[time.Time]()
	typeOfMutex  = reflect.TypeFor[sync.Mutex]()
	typeOfRW     = reflect.TypeFor[sync.RWMutex]()
	typeOfObject = reflect.TypeFor[client.Object]()
	typeOfState  = reflect.TypeFor[*object]()
	typeOfCached = reflect.TypeFor[informer]()
)

// open makes a field readable and writable although it is unexported.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() //nolint:gosec // a test's look inside
}

func isShared(t reflect.Type) bool { return t.Implements(typeOfObject) || t == typeOfState }

// isRequest reports whether a type only joins concurrent requests for one object.
func isRequest(t reflect.Type) bool { return t.String() == "watch.liveRead" }

// Field returns a field of a struct that a pointer refers to, whatever its package, so that
// what is remembered there can be replaced.
func Field(of any, name string) reflect.Value {
	return open(reflect.ValueOf(of).Elem().FieldByName(name))
}

// cloneValue copies an addressable value into another one.
func cloneValue(from, into reflect.Value) {
	switch t := from.Type(); {
	case t == typeOfTime || t == typeOfCached || isShared(t):
		into.Set(from)
		return
	case t == typeOfMutex || t == typeOfRW || isRequest(t):
		return
	}
	switch from.Kind() {
	case reflect.Pointer:
		if from.IsNil() {
			return
		}
		into.Set(reflect.New(from.Type().Elem()))
		cloneValue(from.Elem(), into.Elem())
	case reflect.Interface:
		if from.IsNil() {
			return
		}
		held := reflect.New(from.Elem().Type()).Elem()
		held.Set(from.Elem())
		next := reflect.New(held.Type()).Elem()
		cloneValue(held, next)
		into.Set(next)
	case reflect.Struct:
		for i := range from.NumField() {
			cloneValue(open(from.Field(i)), open(into.Field(i)))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		into.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		value := reflect.New(from.Type().Elem()).Elem()
		next := reflect.New(from.Type().Elem()).Elem()
		for each := from.MapRange(); each.Next(); {
			value.Set(each.Value())
			next.SetZero()
			cloneValue(value, next)
			into.SetMapIndex(each.Key(), next)
		}
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		into.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			cloneValue(from.Index(i), into.Index(i))
		}
	default:
		into.Set(from)
	}
}

// Dump appends a text that is the same for equal values, and only for these.
func Dump(to []byte, of any) []byte {
	if of == nil {
		return append(to, '-')
	}
	v := reflect.New(reflect.TypeOf(of)).Elem()
	v.Set(reflect.ValueOf(of))
	return dumpValue(to, v)
}

func dumpValue(to []byte, v reflect.Value) []byte {
	switch t := v.Type(); {
	case t == typeOfTime:
		return strconv.AppendInt(to, v.Interface().(time.Time).UnixNano(), 36)
	case t == typeOfMutex || t == typeOfRW || t == typeOfCached || isRequest(t):
		return to
	case isShared(t):
		if v.IsNil() {
			return append(to, '-')
		}
		obj := v.Interface().(client.Object)
		return fmt.Appendf(to, "%s/%s@%s", obj.GetUID(), obj.GetName(), obj.GetResourceVersion())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(to, '-')
		}
		if v.Kind() == reflect.Interface {
			held := reflect.New(v.Elem().Type()).Elem()
			held.Set(v.Elem())
			return dumpValue(to, held)
		}
		return dumpValue(to, v.Elem())
	case reflect.Struct:
		to = append(to, '{')
		for i := range v.NumField() {
			to = append(dumpValue(to, open(v.Field(i))), ',')
		}
		return append(to, '}')
	case reflect.Map:
		entries := make([]string, 0, v.Len())
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		for each := v.MapRange(); each.Next(); {
			key.Set(each.Key())
			value.Set(each.Value())
			entry := append(dumpValue(nil, key), ':')
			entries = append(entries, string(dumpValue(entry, value)))
		}
		slices.Sort(entries)
		to = append(to, '(')
		for _, entry := range entries {
			to = append(append(to, entry...), ',')
		}
		return append(to, ')')
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			return append(to, v.Bytes()...)
		}
		to = append(to, '[')
		for i := range v.Len() {
			to = append(dumpValue(to, v.Index(i)), ',')
		}
		return append(to, ']')
	case reflect.String:
		return append(to, v.String()...)
	case reflect.Bool:
		return strconv.AppendBool(to, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(to, v.Int(), 36)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(to, v.Uint(), 36)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return to
	default:
		panic("no text for " + v.Type().String())
	}
}
