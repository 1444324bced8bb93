package doctor

import "open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"

func ok(name, text string) decide.Finding {
	return decide.Finding{Name: name, State: decide.OK, Text: text}
}

func problem(name, text, fix string) decide.Finding {
	return decide.Finding{Name: name, State: decide.Problem, Text: text, Fix: fix}
}

func notConfigured(name, text string) decide.Finding {
	return decide.Finding{Name: name, State: decide.NotConfigured, Text: text}
}

// notVisibleHub says that something decisive may not be read.
func notVisible(name, kinds string) decide.Finding {
	return decide.Finding{Name: name, State: decide.NotVisible, Text: "you may not read " + kinds}
}
