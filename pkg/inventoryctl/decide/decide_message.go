package decide

import (
	"regexp"
	"slices"
	"strings"
)

// ofNamespaces matches the beginning of a sentence of the condition ProfilesSynced about some
// namespaces.
var ofNamespaces = regexp.MustCompile(`(?:^| )In ([a-z0-9, -]+): the cluster `)

// A condition of the manager concerns all namespaces, and nothing but its message says which ones:
// conditions have no other field.

// concerning returns what a message of the condition ProfilesSynced says about one namespace, or
// about all; "" if it says nothing about that one. A reader does not learn what is wrong in
// another.
func concerning(message, namespace string) string {
	return sentences(message, ofNamespaces, func(names []string, text string) string {
		if !hasName(names[1], namespace) {
			return ""
		}
		text, _, _ = strings.Cut(text, " Left out: ") // of all namespaces
		return "the cluster " + text
	})
}

// hasName reports whether a list such as "a, b and 3 more" has a name.
func hasName(list, name string) bool {
	return slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }), name)
}

// ofAccount matches the beginning of a sentence of the condition CredentialsSynced about an account,
// with the namespaces that it concerns, if it names some.
var ofAccount = regexp.MustCompile(`(?:^| )Account (\S+) ((?:is|could) [a-z ]*?)(?: in ([a-z0-9, -]+))?: `)

// aboutAccounts returns what a message of the condition CredentialsSynced says about some accounts
// in one namespace, or about all accounts; "" if it says nothing about these.
func aboutAccounts(message string, accounts []string, namespace string) string {
	return sentences(message, ofAccount, func(parts []string, text string) string {
		account, verb, namespaces := parts[1], parts[2], parts[3]
		if !slices.Contains(accounts, account) || namespaces != "" && !hasName(namespaces, namespace) {
			return ""
		}
		return "Account " + account + " " + verb + ": " + text
	})
}

// sentences returns those sentences of a message that pick returns for their beginnings, with the groups
// of the expression, and the texts that follow. A message in which no sentence begins so is returned whole.
func sentences(message string, beginning *regexp.Regexp, pick func(groups []string, text string) string) string {
	found := beginning.FindAllStringSubmatch(message, -1)
	if len(found) == 0 {
		return message
	}
	var picked []string
	for i, text := range beginning.Split(message, -1)[1:] {
		if sentence := pick(found[i], text); sentence != "" {
			picked = append(picked, sentence)
		}
	}
	return strings.Join(picked, " ")
}
