package decide

import (
	"regexp"
	"slices"
	"strings"
)

// ofNamespaces matches the beginning of a sentence of the condition ProfilesSynced about some
// namespaces, and ofAll that of one about the cluster's profiles everywhere.
var (
	ofNamespaces = regexp.MustCompile(`(?:^| )In ([a-z0-9, -]+): the cluster `)
	ofAll        = regexp.MustCompile(` Left out: `)
)

// A condition of the manager concerns all namespaces, and nothing but its message says which ones:
// conditions have no other field.

// concerning returns what a message of the condition ProfilesSynced says about one namespace, or
// about all; "" if it says nothing about that one. A reader does not learn what is wrong in
// another.
func concerning(message, namespace string) string {
	found := ofNamespaces.FindAllStringSubmatchIndex(message, -1)
	if len(found) == 0 {
		return message
	}
	var sentences []string
	for i, match := range found {
		end := len(message)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		names, text := message[match[2]:match[3]], message[match[1]:end]
		if all := ofAll.FindStringIndex(text); all != nil {
			text = text[:all[0]]
		}
		if hasName(names, namespace) {
			sentences = append(sentences, "the cluster "+text)
		}
	}
	return strings.Join(sentences, " ")
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
	found := ofAccount.FindAllStringSubmatchIndex(message, -1)
	if len(found) == 0 {
		return message
	}
	var sentences []string
	for i, match := range found {
		end := len(message)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		account, verb, text := message[match[2]:match[3]], message[match[4]:match[5]], message[match[1]:end]
		isHere := match[6] < 0 || hasName(message[match[6]:match[7]], namespace)
		if slices.Contains(accounts, account) && isHere {
			sentences = append(sentences, "Account "+account+" "+verb+": "+text)
		}
	}
	return strings.Join(sentences, " ")
}
