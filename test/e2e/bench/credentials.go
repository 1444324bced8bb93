package bench

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	consumers   = "bench-credentials"
	accountName = "bench"
	syncLabel   = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	targets     = "inventory.open-cluster-management.io/sync-to-namespaces"
	// absent is what the consumer records when the copy is deleted.
	absent = ""
)

// Row is the result for one kind of change.
type Row struct {
	What   string
	Sample stats.Sample
}

// Table is the result of one run.
type Table []Row

// Print writes the report.
func (t Table) Print(out io.Writer) {
	for _, row := range t {
		fmt.Fprintf(out, "%-48s %s\n", row.What, row.Sample)
	}
}

// Credentials measures how long a copied token takes to follow its account and to be
// withdrawn, n times for each way. The account is the benchmark's own: no agent writes its
// token, so only the manager is measured.
//
// ca is any certificate, in PEM.
func Credentials(ctx context.Context, hub client.WithWatch, ca []byte, n int) (_ Table, err error) {
	c := &credentials{hub: hub, ca: ca, copies: newBoard()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { err = errors.Join(err, c.tearDown(context.WithoutCancel(ctx))) }()
	if err := c.setUp(ctx); err != nil {
		return nil, err
	}
	var table Table
	rotation, err := c.rotations(ctx, n)
	if err != nil {
		return nil, err
	}
	table = append(table, Row{"account's status tells of a new token -> copy", rotation})
	for _, way := range c.withdrawals() {
		row := Row{What: way.what}
		for range n {
			took, err := c.change(ctx, absent, way.withdraw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way.what, err)
			}
			row.Sample = append(row.Sample, took)
			if _, err := c.change(ctx, c.token, way.restore); err != nil {
				return nil, fmt.Errorf("%s, restored: %w", way.what, err)
			}
		}
		table = append(table, row)
	}
	for _, harm := range c.harms() {
		row := Row{What: harm.what}
		for range n {
			took, err := c.change(ctx, c.token, harm.do)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", harm.what, err)
			}
			row.Sample = append(row.Sample, took)
		}
		table = append(table, row)
	}
	return table, nil
}

type credentials struct {
	hub    client.WithWatch
	copies *board
	ca     []byte    // of the API server, as the agent's is
	uid    types.UID // of the account
	token  string
	serial int
}

type withdrawal struct {
	what              string
	withdraw, restore func(context.Context) error
}

func (c *credentials) withdrawals() []withdrawal {
	metadata := func(field, key, value string) func(context.Context) error {
		return func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"metadata":{%q:{%q:%q}}}`, field, key, value)
			return c.hub.Patch(ctx, newAccount(), client.RawPatch(types.MergePatchType, patch))
		}
	}
	return []withdrawal{
		{"label off -> copy gone", metadata("labels", syncLabel, "false"), metadata("labels", syncLabel, "true")},
		{
			"annotation narrowed -> copy gone",
			metadata("annotations", targets, "elsewhere"),
			metadata("annotations", targets, consumers),
		},
		{
			"namespace unbound -> copy gone",
			func(ctx context.Context) error { return c.hub.Delete(ctx, c.binding()) },
			func(ctx context.Context) error { return c.hub.Create(ctx, c.binding()) },
		},
		{"cluster out of the set -> copy gone", c.move("default"), c.move(consumers)},
		{
			"account deleted -> copy gone",
			func(ctx context.Context) error { return c.hub.Delete(ctx, newAccount()) },
			c.createAccount,
		},
	}
}

func (c *credentials) harms() []struct {
	what string
	do   func(context.Context) error
} {
	return []struct {
		what string
		do   func(context.Context) error
	}{
		{"copy altered -> repaired", func(ctx context.Context) error {
			return c.hub.Patch(
				ctx, c.copied(), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"token":"altered"}}`)),
			)
		}},
		{"copy deleted -> made again", func(ctx context.Context) error { return c.hub.Delete(ctx, c.copied()) }},
	}
}

// rotations measures from before the account's status is written, as its agent does after
// it has written the token.
func (c *credentials) rotations(ctx context.Context, n int) (stats.Sample, error) {
	var sample stats.Sample
	for range n {
		if err := c.newToken(ctx); err != nil {
			return nil, err
		}
		took, err := c.change(ctx, c.token, c.tell)
		if err != nil {
			return nil, fmt.Errorf("rotation: %w", err)
		}
		sample = append(sample, took)
	}
	return sample, nil
}

// change makes a change and returns how much later the consumer saw its effect.
func (c *credentials) change(ctx context.Context, want string, do func(context.Context) error) (time.Duration, error) {
	seen := c.copies.expect(published, want)
	start := time.Now()
	if err := do(ctx); err != nil {
		return 0, err
	}
	select {
	case at := <-seen:
		rest := time.NewTimer(pause)
		defer rest.Stop()
		select {
		case <-rest.C:
			return at.Sub(start), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	case <-time.After(lost):
		return 0, fmt.Errorf("not seen within %s", lost)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// newToken writes a token as the account's agent would. No cluster accepts it.
func (c *credentials) newToken(ctx context.Context) error {
	c.serial++
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"exp":%d,"jti":"%d"}`, time.Now().Add(24*time.Hour).Unix(), c.serial)
	c.token = part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part([]byte("bench"))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: published,
			Name:      accountName,
			Labels:    map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "authentication.open-cluster-management.io/v1beta1",
					Kind:       "ManagedServiceAccount",
					Name:       accountName,
					UID:        c.uid,
				},
			},
		},
		Data: map[string][]byte{"token": []byte(c.token), "ca.crt": c.ca},
	}
	err := c.hub.Create(ctx, secret)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = c.hub.Update(ctx, secret)
	}
	return err
}

// tell writes the account's status. Its time advances by seconds, faster than the clock: it
// only has to differ.
func (c *credentials) tell(ctx context.Context) error {
	expires, refreshed := time.Now().Add(24*time.Hour), time.Now().Add(time.Duration(c.serial)*time.Second)
	patch := fmt.Appendf(
		nil,
		`{"status":{"expirationTimestamp":%q,"tokenSecretRef":{"name":%q,"lastRefreshTimestamp":%q}}}`,
		expires.UTC().Format(time.RFC3339),
		accountName,
		refreshed.UTC().Format(time.RFC3339),
	)
	return c.hub.Status().Patch(ctx, newAccount(), client.RawPatch(types.MergePatchType, patch))
}

func (c *credentials) createAccount(ctx context.Context) error {
	account := newAccount()
	account.SetLabels(map[string]string{syncLabel: "true"})
	account.SetAnnotations(map[string]string{targets: consumers})
	if err := c.hub.Create(ctx, account); err != nil {
		return err
	}
	c.uid = account.GetUID()
	// The garbage collector deletes the former Secret with its owner sooner or later.
	if err := client.IgnoreNotFound(
		c.hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: published, Name: accountName}}),
	); err != nil {
		return err
	}
	if err := c.newToken(ctx); err != nil {
		return err
	}
	c.copies.expectInstead(published, c.token)
	return c.tell(ctx)
}

func newAccount() *unstructured.Unstructured {
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{"enabled": true}}},
	}
	object.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	object.SetKind("ManagedServiceAccount")
	object.SetNamespace(published)
	object.SetName(accountName)
	return object
}

func (c *credentials) copied() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: consumers, Name: published + "-" + accountName}}
}

func (c *credentials) binding() *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: consumers, Name: consumers},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: consumers},
	}
}

func (c *credentials) move(set string) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set)
		return c.hub.Patch(
			ctx,
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: published}},
			client.RawPatch(types.MergePatchType, patch),
		)
	}
}

func (c *credentials) objects() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: consumers}},
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: consumers},
			Spec: clusterv1beta2.ManagedClusterSetSpec{
				ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
			},
		},
		c.binding(),
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: published, Labels: map[string]string{setLabel: consumers}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 3600},
		},
	}
}

func (c *credentials) setUp(ctx context.Context) error {
	for _, object := range c.objects() {
		if err := c.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := looksJoined(ctx, c.hub, published); err != nil {
		return err
	}
	err := await.Success(ctx, "the addon to be enabled on "+published, lost, retryPeriod, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.hub.Create(ctx, addonOf(published)))
	})
	if err != nil {
		return err
	}
	profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: consumers, Name: published}}
	err = await.Success(ctx, "the profile of "+published, lost, retryPeriod, func(ctx context.Context) error {
		return c.hub.Get(ctx, client.ObjectKeyFromObject(profile), profile)
	})
	if err != nil {
		return err
	}
	watcher, err := c.hub.Watch(ctx, &corev1.SecretList{}, client.InNamespace(consumers))
	if err != nil {
		return err
	}
	go c.follow(watcher)
	_, err = c.change(ctx, "a token", c.createAccount)
	return err
}

// follow is the consumer: it records which token the copy holds.
func (c *credentials) follow(watcher watch.Interface) {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		secret, ok := event.Object.(*corev1.Secret)
		switch {
		case !ok || secret.Name != c.copied().Name:
		case event.Type == watch.Deleted:
			c.copies.saw(published, absent)
		default:
			c.copies.saw(published, string(secret.Data["token"]))
		}
	}
}

func (c *credentials) tearDown(ctx context.Context) error {
	problems := []error{client.IgnoreNotFound(c.hub.Delete(ctx, newAccount())), letGo(ctx, c.hub, published)}
	objects := c.objects()
	for i := range objects {
		problems = append(problems, client.IgnoreNotFound(c.hub.Delete(ctx, objects[len(objects)-1-i])))
	}
	return errors.Join(problems...)
}
