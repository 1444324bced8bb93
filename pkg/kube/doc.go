// Package kube holds what any Kubernetes controller needs and no library brings
// in the form wanted here: minimal patches with an optimistic lock,
// changing single entries of a condition list that others write too, waiting for a
// cache to see one's own writes, and requests that no log repeats. It knows no Open Cluster
// Management and no inventory words.
package kube
