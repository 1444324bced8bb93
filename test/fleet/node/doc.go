// Package node is a Kubernetes node that runs pods as plain local processes:
// without containers, a container runtime or a kubelet, and without root where
// the kernel allows user namespaces. Deployments, Jobs, Helm hooks, ManifestWork
// feedback and addon health work with it against a real API server, and tests use
// a chart's real service accounts, RBAC, Secrets, probes and security contexts.
//
// # What it owns
//
// One Node object and its lease; the binding of every pod that has no node, since
// there is no scheduler; the status of the pods bound to it, and the removal of
// their objects when they have ended. The pod and node controllers are
// virtual-kubelet's; type provider says what they are not used for, and why. The
// node reads the Secrets and ConfigMaps that its pods name, each through a watch of
// its own, and requests their service account tokens. It writes to the API server
// only what changed.
//
// On the host it owns Config.Dir. There <pod UID>/<container>.pid identifies the
// running process ("<pid> <field 22 of /proc/<pid>/stat>"), for tests that measure
// or kill it. Logs are <Config.LogDir>/<namespace>_<pod>_<container>.log.
//
// # What a container gets
//
// An image is a directory; its tag and digest are ignored. The process is the first
// of its PID namespace and sees a root of its own (package sandbox): the image
// read-only at /, /proc, a small /dev, /tmp unless the root is read-only, /etc/hosts
// and the like, and its volumes at their real paths: secret, configMap, downwardAPI,
// projected (tokens are bound to the pod and renewed), emptyDir and image. Mounted
// content follows its object at once and is replaced atomically, as by a kubelet.
//
// Variables, init containers, restart policies with back-off (1 s to 30 s), probes
// (httpGet, tcpSocket, exec), grace periods, termination messages, runAsUser,
// runAsGroup, fsGroup, readOnlyRootFilesystem and subPath work as elsewhere.
//
// Every pod has a loopback address of its own as its pod IP, in the one network of
// the host: a process must bind to its pod IP, or it occupies the port for all pods.
// In-cluster clients find the API server through KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT.
//
// # Services, and networks of pods
//
// With Config.ServiceCIDR every Service has a loopback address, where the node
// accepts connections and forwards them to a ready pod that the Service selects. The
// names of Services are in every pod's /etc/hosts, which is kept up to date, and in
// the file ServiceHosts for processes of the host. A Service with an external name
// is another name of a Service.
//
// An API server whose egress selector names the socket Config.ServiceTunnel reaches Services at
// their cluster addresses, so that it can call webhooks in pods.
//
// Programs that bind to all addresses cannot share the host's network. Each pod of
// an image in Config.OwnNetwork has a network namespace for all its containers, with
// an address of 10.244.0.0/24. A bridge in one more namespace connects these pods
// with each other and with the node, which has the cluster addresses of Services
// there and probes from there. It leads nowhere else: on the host such a pod reaches
// the API server and what Config.Outside lists, under the addresses they have there,
// and it can resolve Services only. Config.Expose is the way in from outside of the
// cluster. The namespaces have no names, so they are gone when the pods and the node
// have ended in whatever way.
//
// When a node process ends, its pods' processes end with it. The next one starts the
// pods again: restart counts go up, pods that must not run twice (restartPolicy
// Never) fail, and emptyDirs are empty.
//
// # Images
//
// An image is a directory, whatever its tag or digest. Only if that directory has a
// sibling <directory>.<tag>, that is what the tag stands for.
//
// # Limits
//
//   - Refused, with a message in the container's waiting state: other kinds of
//     volume, sidecars (init containers with a restartPolicy), lifecycle hooks, grpc
//     probes, containers without a command (an image has no entrypoint).
//   - Ignored: resource limits and requests, capabilities and seccomp (new privileges
//     are always given up, and a user other than 0 has none), image pull policy and
//     secrets, nodeSelector, affinity, tolerations, activeDeadlineSeconds of a pod,
//     ephemeral containers. A changed image of a running container takes effect at
//     the next restart.
//   - A container without runAsUser runs as 65532, the user of images that are made
//     not to run as root.
//   - Without root, all containers are the node's own user on the host, whatever they
//     see; supplementary groups and fsGroup do not exist.
//   - A pod that is deleted before its main containers run is removed at once, though
//     its init container may run until the end of the grace period.
//   - No logs, exec, attach or port-forward through the API server.
//   - Services: TCP only, no EndpointSlices (a loopback address may not be in one), no
//     session affinity. Headless ones have one address in the host's network, as all
//     others, and none in a pod's own. A port that another process occupies on all
//     addresses of the host is retried.
//   - Networks of pods need root, and the kernel's bridge and veth.
//   - Linux 5.12 or newer, static binaries.
package node
