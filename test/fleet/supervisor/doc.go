// Package supervisor keeps the processes of one fleet running.
//
// Run is the supervisor itself, the one process of a fleet that outlives the
// command that started it. Control is the handle of all others on it: commands
// and tests describe processes, start and stop them, and read their status
// through a socket in <fleet>/run.
//
// Below the fleet's directory it writes
//
//	run/control.sock           where it listens
//	run/processes.json         what it runs, for an end without it
//	logs/<name>.log            output of each process
//	tmp/<name>                 the TMPDIR of each process
//
// Processes are its children. The kernel kills them when it dies; an orderly
// end stops them tier by tier, from the top.
package supervisor
