package node

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// imageUser is the user that every image is assumed to name, as distroless "nonroot" images do. An
// image here is a directory and names none.
const imageUser = int64(65532)

// user is the user that a container runs as.
type user struct {
	uid, gid int
	groups   []int
}

// runAs resolves the security contexts of pod and container. The default group has the user's number.
func runAs(pod *corev1.Pod, container *corev1.Container) (user, error) {
	var forPod corev1.PodSecurityContext
	if pod.Spec.SecurityContext != nil {
		forPod = *pod.Spec.SecurityContext
	}
	var own corev1.SecurityContext
	if container.SecurityContext != nil {
		own = *container.SecurityContext
	}
	uid := first(own.RunAsUser, forPod.RunAsUser, imageUser)
	if nonRoot := own.RunAsNonRoot; uid == 0 && (isTrue(nonRoot) || nonRoot == nil && isTrue(forPod.RunAsNonRoot)) {
		return user{}, errors.New("container has runAsNonRoot and runAsUser 0")
	}
	who := user{uid: int(uid), gid: int(first(own.RunAsGroup, forPod.RunAsGroup, uid))}
	for _, group := range forPod.SupplementalGroups {
		who.groups = append(who.groups, int(group))
	}
	if forPod.FSGroup != nil {
		who.groups = append(who.groups, int(*forPod.FSGroup))
	}
	return who, nil
}

func first(own, forPod *int64, otherwise int64) int64 {
	switch {
	case own != nil:
		return *own
	case forPod != nil:
		return *forPod
	default:
		return otherwise
	}
}

func readOnlyRoot(container *corev1.Container) bool {
	return container.SecurityContext != nil && isTrue(container.SecurityContext.ReadOnlyRootFilesystem)
}
