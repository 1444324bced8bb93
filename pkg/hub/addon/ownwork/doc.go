// Package ownwork knows which ManifestWorks are this addon's, what each is for, and with which
// finalizers addon-framework waits for them. Only names and finalizers count: every cluster may
// change labels and content of the ManifestWorks in its namespace, but create none.
//
// It reads and writes nothing.
package ownwork
