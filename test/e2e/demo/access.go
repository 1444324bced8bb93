package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	// consumer is the name of everything that belongs to the consumer.
	consumer    = "demo"
	syncLabel   = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	toNamespace = "inventory.open-cluster-management.io/sync-to-namespaces"
	// accountsNS is where managed-serviceaccount's agent keeps accounts on a spoke.
	accountsNS = "open-cluster-management-agent-addon"

	providerFile = `{"providers": [{"name": "open-cluster-management", "execConfig": {
  "apiVersion": "client.authentication.k8s.io/v1", "command": "/plugin/cp-creds",
  "args": ["--managed-serviceaccount=` + consumer + `"], "provideClusterInfo": true, "interactiveMode": "Never"}}]}`
)

// invite gives the consumer an account on cluster1 and the rights it needs.
func (d *Demo) invite(ctx context.Context) error {
	if err := consumers.BuildImage(ctx, d.fleet, d.out); err != nil {
		return err
	}
	rights := []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: consumer},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: consumer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: consumer},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountsNS, Name: consumer}},
		},
	}
	if err := createAll(ctx, d.spokes["cluster1"], rights...); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: consumer}
	own := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: consumer},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: consumer}},
		},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"providers.json": providerFile}},
		account(),
	}
	if err := createAll(ctx, d.hub, own...); err != nil {
		return err
	}
	// An earlier demo left it withdrawn.
	labelled := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, syncLabel)
	if err := d.hub.Patch(ctx, account(), client.RawPatch(types.MergePatchType, labelled)); err != nil {
		return err
	}
	d.say("ManagedServiceAccount cluster1/%s, labeled %s=true,", consumer, syncLabel)
	d.say("annotated %s=%s", toNamespace, namespace)
	if err := d.until(ctx, "the token to be copied", func(ctx context.Context) error {
		_, err := d.copied(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := d.until(ctx, "the profile to say how to connect", func(ctx context.Context) error {
		profile := &inventoryv1alpha1.ClusterProfile{}
		if err := d.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cluster1"}, profile); err != nil {
			return err
		}
		if len(profile.Status.AccessProviders) == 0 {
			return errors.New("it names no access provider")
		}
		return nil
	}); err != nil {
		return err
	}
	return d.inventory(ctx, 0, "describe", "cluster1", "-n", namespace)
}

// connect logs in, before and after the token is rotated.
func (d *Demo) connect(ctx context.Context) error {
	if err := d.login(ctx, true); err != nil {
		return err
	}
	before, err := d.source(ctx)
	if err != nil {
		return err
	}
	d.say("the token is rotated, as it is from time to time:")
	// The time by which an account distinguishes tokens is in seconds.
	if err := d.pause(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := d.hub.Delete(ctx, before); err != nil {
		return err
	}
	if err := d.until(ctx, "the new token to be copied", func(ctx context.Context) error {
		now, err := d.source(ctx)
		if err != nil {
			return err
		}
		copied, err := d.copied(ctx)
		if err == nil && (now.UID == before.UID || !bytes.Equal(copied.Data["token"], now.Data["token"])) {
			err = errors.New("it is still the old one")
		}
		return err
	}); err != nil {
		return err
	}
	d.say(
		"managed-serviceaccount made another, and %s/cluster1-%s holds it, %d ms later",
		namespace,
		consumer,
		time.Since(start).Milliseconds(),
	)
	return d.login(ctx, true)
}

// withdraw withdraws the copy.
func (d *Demo) withdraw(ctx context.Context) error {
	start := time.Now()
	unlabelled := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, syncLabel)
	if err := d.hub.Patch(ctx, account(), client.RawPatch(types.MergePatchType, unlabelled)); err != nil {
		return err
	}
	if err := d.until(ctx, "the copy to be gone", func(ctx context.Context) error {
		switch _, err := d.copied(ctx); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is still there")
	}); err != nil {
		return err
	}
	d.say("the account's label is taken off; the copy was gone after %d ms", time.Since(start).Milliseconds())
	if err := d.login(ctx, false); err != nil {
		return err
	}
	d.say("That ends new logins. A token that was read before is good until it expires, or until")
	d.say("its account is deleted; cp-creds has a consumer that keeps running ask again within five minutes.")
	return nil
}

func account() *unstructured.Unstructured {
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{"enabled": true, "validity": "24h"}}},
	}
	object.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	object.SetKind("ManagedServiceAccount")
	object.SetNamespace("cluster1")
	object.SetName(consumer)
	object.SetLabels(map[string]string{syncLabel: "true"})
	object.SetAnnotations(map[string]string{toNamespace: namespace})
	return object
}

func createAll(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// source returns the Secret in which managed-serviceaccount keeps the account's token.
func (d *Demo) source(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, d.hub.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: consumer}, secret)
}

func (d *Demo) copied(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, d.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cluster1-" + consumer}, secret)
}

// login runs the consumer once, as a Pod, and shows what it says.
func (d *Demo) login(ctx context.Context, works bool) error {
	d.logins++
	pod := d.consumerPod(fmt.Sprintf("login-%d-%d", time.Now().Unix(), d.logins))
	if err := d.hub.Create(ctx, pod); err != nil {
		return err
	}
	if err := d.until(ctx, "the consumer's Pod to end", func(ctx context.Context) error {
		if err := d.hub.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	}); err != nil {
		return err
	}
	log, err := os.ReadFile(
		filepath.Join(d.fleet.LogDir(), fleet.HubName, "pods", pod.Namespace+"_"+pod.Name+"_lister.log"),
	)
	if err != nil {
		return err
	}
	if worked := d.showLogin(pod.Name, string(log)); worked != works {
		return fmt.Errorf("the consumer's login to cluster1: worked is %t:\n%s", worked, log)
	}
	return d.hub.Delete(ctx, pod)
}

// showLogin shows what the consumer prints about cluster1; its output about cluster2, where
// it has no account, is irrelevant.
func (d *Demo) showLogin(pod, log string) (worked bool) {
	for text := range strings.Lines(log) {
		var line struct {
			Profile    string
			Namespaces []string
			Skipped    string
			Error      string
		}
		if strings.HasPrefix(text, "cp-creds: ") && strings.Contains(text, "cluster1-"+consumer) {
			d.say("%s: %s", pod, strings.TrimSpace(text))
		}
		if json.Unmarshal([]byte(text), &line) != nil || line.Profile != namespace+"/cluster1" {
			continue
		}
		if line.Skipped != "" {
			d.say("%s: cluster1 is skipped: %s", pod, line.Skipped)
			continue
		}
		if line.Error != "" {
			d.say("%s: login to cluster1 failed: %s", pod, line.Error)
			continue
		}
		worked = true
		d.say("%s: the namespaces of cluster1 are %s", pod, strings.Join(line.Namespaces, ", "))
	}
	return worked
}

func (d *Demo) consumerPod(name string) *corev1.Pod {
	plugin := corev1.VolumeMount{Name: "plugin", MountPath: "/plugin"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: consumer,
			RestartPolicy:      corev1.RestartPolicyNever,
			SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532)},
			InitContainers: []corev1.Container{
				{
					Name:         "cp-creds",
					Image:        fleet.ImageRepository,
					Command:      []string{"/cp-creds", "install", "/plugin"},
					VolumeMounts: []corev1.VolumeMount{plugin},
				},
			},
			Containers: []corev1.Container{
				{
					Name:         "lister",
					Image:        fleet.ConsumerImage,
					Command:      []string{"/lister", "-clusterprofile-provider-file=/etc/consumer/providers.json"},
					VolumeMounts: []corev1.VolumeMount{plugin, {Name: "config", MountPath: "/etc/consumer"}},
				},
			},
			Volumes: []corev1.Volume{
				{Name: "plugin", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{
					Name: "config",
					VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: consumer}},
					},
				},
			},
		},
	}
}
