// Package sandbox starts one process the way a container runtime would, without a container runtime.
//
// A Launcher re-executes the running binary with a hidden first argument. The new process is born in its own mount, PID
// and UTS namespaces (and, when the caller is not root, in its own user namespace), builds a private root out of
// an image directory and bind mounts, pivots into it, becomes the wanted user and executes the command. Therefore every
// program that uses this package calls Init first thing in main or TestMain.
//
// Nothing outlives its parent: the command is the first process of its PID namespace, so the kernel ends everything it
// started together with it, and it is itself killed by the kernel (PR_SET_PDEATHSIG) when the thread that started it
// ends. That thread belongs to the Launcher and ends with it, or with the whole process, however that dies.
//
// Not isolated: the network, unless Spec.Network says otherwise (loopback addresses
// keep processes apart), CPU and memory (no cgroups), and System V IPC.
// Without root a process sees one user only: the one it was told to be, which is the caller on the host.
package sandbox
