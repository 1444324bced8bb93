package decide

import "testing"

func TestConcerning(t *testing.T) {
	const message = "In team-a: the cluster cannot be published: exceeded quota. In team-b, team-c and 3 more: the " +
		"cluster cannot be published: the Namespace is being deleted. Left out: claim x (empty)."
	for name, test := range map[string]struct{ message, namespace, want string }{
		"the first":                {message, "team-a", "the cluster cannot be published: exceeded quota."},
		"one of several":           {message, "team-c", "the cluster cannot be published: the Namespace is being deleted."},
		"another":                  {message, "team-d", ""},
		"a part of another's name": {message, "team", ""},
		"a word of the list":       {message, "x", ""},
		"all of them": {
			"ClusterRole r lets OCM write ClusterProfiles.", "team-a", "ClusterRole r lets OCM write ClusterProfiles.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := concerning(test.message, test.namespace); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAboutAccounts(t *testing.T) {
	const message = "Account a is not copied in team-a, team-b: a Secret is there. Account b could not be copied or " +
		"withdrawn in team-c: no. Account c is not copied: its token has expired."
	for name, test := range map[string]struct{ message, account, namespace, want string }{
		"here":               {message, "a", "team-b", "Account a is not copied: a Secret is there."},
		"elsewhere":          {message, "a", "team-c", ""},
		"another account":    {message, "b", "team-a", ""},
		"could not":          {message, "b", "team-c", "Account b could not be copied or withdrawn: no."},
		"everywhere":         {message, "c", "team-x", "Account c is not copied: its token has expired."},
		"about all accounts": {"No copies are written.", "a", "team-a", "No copies are written."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := aboutAccounts(test.message, []string{test.account}, test.namespace); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
