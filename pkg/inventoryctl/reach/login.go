package reach

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxFailureBytes is how much of the plugin's own line is shown.
const maxFailureBytes = 900

// token gets the token from the exec plugin, as a client does.
func (w Way) token(ctx context.Context) (string, decide.Finding) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	info, _ := json.Marshal(map[string]any{ // strings only, so it cannot fail
		"apiVersion": w.Exec.APIVersion, "kind": "ExecCredential",
		"spec": map[string]any{"interactive": false, "cluster": map[string]any{
			"server": w.Address.Server, "config": map[string]string{contract.ExecClusterName: w.Cluster},
		}},
	})
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, w.Exec.Command, w.Exec.Args...)
	child.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	for _, variable := range w.Exec.Env {
		child.Env = append(child.Env, variable.Name+"="+variable.Value)
	}
	child.Stdin, child.Stdout, child.Stderr = w.Stdin, &stdout, &stderr
	if err := child.Run(); err != nil {
		code := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = fmt.Sprintf(" (exit code %d)", exit.ExitCode())
		}
		line := cmp.Or(strings.TrimPrefix(strings.TrimSpace(stderr.String()), "error: "), err.Error())
		return "", problem(hopToken, kube.Shorten(line, maxFailureBytes)+code, "")
	}
	credential := &clientauthenticationv1.ExecCredential{}
	if err := json.Unmarshal(stdout.Bytes(), credential); err != nil || credential.Status == nil ||
		credential.Status.Token == "" {
		return "", problem(hopToken, "the exec plugin gives no token", "")
	}
	return credential.Status.Token, ok(hopToken, "the exec plugin gives one of the account "+w.Account)
}

// authenticate asks the cluster as whom it knows the account.
func (w Way) authenticate(ctx context.Context, config *rest.Config) decide.Finding {
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return problem(hopAuthentication, w.safe(config, err), "")
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return problem(hopAuthentication, "the cluster rejects the token (401)", "the account was deleted or the cluster "+
			"recreated, and the next rotation fixes it: kubectl get managedserviceaccount "+w.Account+" -n "+w.Cluster)
	case err != nil:
		return problem(hopAuthentication, "the cluster does not say whose the token is: "+w.safe(config, err),
			w.hintOfTunnel())
	}
	user := review.Status.UserInfo.Username
	if !strings.HasPrefix(user, "system:serviceaccount:") || !strings.HasSuffix(user, ":"+w.Account) {
		return problem(hopAuthentication,
			"the cluster knows the caller as "+kube.Quote(user)+", which is not the account", "")
	}
	return ok(hopAuthentication, "the cluster knows the account as "+kube.Shorten(user, shownBytes))
}

// ParseQuestion reads VERB RESOURCE[.GROUP] [in NAMESPACE]: something that the account may do or not.
func ParseQuestion(text string) (q authorizationv1.ResourceAttributes, err error) {
	words := strings.Fields(text)
	if len(words) != 2 && (len(words) != 4 || words[2] != "in") {
		return q, fmt.Errorf("%s is not VERB RESOURCE[.GROUP] [in NAMESPACE], such as \"list pods in default\"",
			kube.Quote(text))
	}
	q.Verb = words[0]
	q.Resource, q.Group, _ = strings.Cut(words[1], ".")
	if len(words) == 4 {
		q.Namespace = words[3]
	}
	return q, nil
}

// inWords is how a question is asked.
func inWords(q authorizationv1.ResourceAttributes) string {
	text := q.Verb + " " + q.Resource
	if q.Group != "" {
		text += "." + q.Group
	}
	if q.Namespace != "" {
		return text + " in " + q.Namespace
	}
	return text + " in all namespaces"
}

// rights asks the cluster what the account may do.
func (w Way) rights(ctx context.Context, config *rest.Config) []decide.Finding {
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return []decide.Finding{problem(hopRights, w.safe(config, err), "")}
	}
	if len(w.Questions) == 0 {
		return []decide.Finding{w.anyRights(ctx, config, client)}
	}
	var answers []decide.Finding
	for _, q := range w.Questions {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &q},
		}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		switch {
		case err != nil:
			answers = append(answers, problem(hopRights, silent+w.safe(config, err), ""))
		case answer.Status.Allowed:
			answers = append(answers, ok(hopRights, "the account may "+kube.Shorten(inWords(q), shownBytes)))
		default:
			answers = append(answers, problem(hopRights, "the account may not "+kube.Shorten(inWords(q), shownBytes),
				"the hub's administrator grants rights on the cluster, for instance with a ManifestWork"))
		}
	}
	return answers
}

const silent = "the cluster does not say what the account may do: "

// anyRights counts what the account may do in addition to what every account may.
func (w Way) anyRights(
	ctx context.Context, config *rest.Config, client authorizationclient.AuthorizationV1Interface,
) decide.Finding {
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault},
	}
	answer, err := client.SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return problem(hopRights, silent+w.safe(config, err), "")
	}
	count := 0
	for _, rule := range answer.Status.ResourceRules {
		isMore := func(resource string) bool { return !strings.HasPrefix(resource, "selfsubject") }
		if slices.ContainsFunc(rule.Resources, isMore) {
			count++
		}
	}
	if count == 0 {
		return decide.NotConfigured.Finding(hopRights, "the account has no rights on the cluster as a whole or in its "+
			"namespace default; --can asks about another")
	}
	return ok(hopRights, fmt.Sprintf("%d rules grant the account rights; --can asks about single ones", count))
}

// safe returns an error as a text without the token, should a server repeat it.
func (w Way) safe(config *rest.Config, err error) string {
	return kube.Shorten(strings.ReplaceAll(err.Error(), config.BearerToken, "..."), shownBytes)
}
