package credentials

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestACopyIsRepaired(t *testing.T) {
	for name, harm := range map[string]func(s *scene, c *corev1.Secret){
		"deleted": func(s *scene, c *corev1.Secret) { s.MustDelete(c) },
		"another token": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Data["token"] = []byte("x") })
		},
		"a key more": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Data["more"] = []byte("x") })
		},
		"no data": func(s *scene, c *corev1.Secret) { apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Data = nil }) },
		"no owner": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.OwnerReferences = nil })
		},
		"another expiry": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) {
				c.Annotations["inventory.open-cluster-management.io/expires"] = "2099-01-01T00:00:00Z"
			})
		},
		"no labels": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Labels = nil; c.Data = nil })
		},
		"another source": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c,
				func(c *corev1.Secret) { c.Annotations["inventory.open-cluster-management.io/source-account"] = "x" })
		},
		"no annotations": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Annotations = nil })
		},
		"immutable": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Immutable = ptr.To(true); c.Data["token"] = []byte("x") })
		},
		"immutable and held": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) {
				c.Immutable = ptr.To(true)
				c.Data = nil
				c.Finalizers = []string{"example.com/keep"}
			})
		},
		"deleted but held": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Finalizers = []string{"example.com/keep"} })
			s.MustDelete(c)
		},
		"another type in its place": func(s *scene, c *corev1.Secret) {
			// While the manager is stopped, so that it exists at the start.
			s.stop()
			s.MustDelete(c)
			s.MustCreate(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: c.Labels,
				Annotations: c.Annotations}, Type: "example.com/other", Data: c.Data})
			s.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.followed(s.team)
			c := s.copied()
			want := c.DeepCopy()
			harm(s, c)
			s.Eventually("the copy is repaired", func() string {
				got := s.world.copied(s.team, s.cluster, "reader")
				if got == nil {
					return "it is gone"
				}
				return cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{},
					"UID", "ResourceVersion", "CreationTimestamp", "ManagedFields", "Generation"))
			})
			s.settled()
			s.wire.Reset()
			s.wire.Quiet(s.T, quietly, "after the repair")
		})
	}
}

// TestACopyIsRepairedThatChangesWhileItIsWritten: another client changes a new copy before the manager has the
// answer of the API server. Then the manager's watch has shown that already, and shows nothing more.
func TestACopyIsRepairedThatChangesWhileItIsWritten(t *testing.T) {
	for name, harm := range map[string]func(s *scene, c *corev1.Secret){
		"deleted": func(s *scene, c *corev1.Secret) { s.MustDelete(c) },
		"no labels": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Labels = nil })
		},
		"no annotations": func(s *scene, c *corev1.Secret) {
			apitest.Edit(s.world, c, func(c *corev1.Secret) { c.Annotations = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			answers := make(chan struct{})
			s.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.Method != http.MethodPost || call.Resource != "secrets" {
					return apitest.Fault{}
				}
				return apitest.Fault{AfterServer: true, Until: answers}
			})
			token := s.Rotate(s.Account(s.cluster, "writer", s.team))
			copied := s.holds(s.team, s.cluster, "writer", token)
			key := client.ObjectKeyFromObject(copied)
			shown := func(want string) {
				t.Helper()
				s.Eventually("the manager's watch shows version "+want, func() string {
					if got := s.seenVersion(key); got != want {
						return "it shows version " + got
					}
					return ""
				})
			}
			shown(copied.ResourceVersion)
			harm(s, copied)
			shown("")
			s.wire.Fail(nil)
			close(answers)
			s.Eventually("the copy is repaired", func() string {
				got := s.world.copied(s.team, s.cluster, "writer")
				switch {
				case got == nil:
					return "it is gone"
				case string(got.Data["token"]) != token || got.Annotations[contract.AnnotationSourceAccount] != "writer":
					return fmt.Sprintf("annotations %v", got.Annotations)
				}
				return cmp.Diff(target.Labels(), got.Labels)
			})
		})
	}
}

// TestACopyIsRecognizedAfterARestart removes what marks a copy while no manager runs.
func TestACopyIsRecognizedAfterARestart(t *testing.T) {
	for name, harm := range map[string]func(*corev1.Secret){
		"no labels":                func(c *corev1.Secret) { c.Labels = nil },
		"no annotations":           func(c *corev1.Secret) { c.Annotations = nil },
		"no labels or annotations": func(c *corev1.Secret) { c.Labels, c.Annotations = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settled()
			s.stop()
			copied := s.copied()
			apitest.Edit(s.world, copied.DeepCopy(), func(c *corev1.Secret) {
				harm(c)
				metav1.SetMetaDataLabel(&c.ObjectMeta, "theirs", "x")
			})
			s.start()
			want := target.Labels()
			want["theirs"] = "x"
			s.Eventually("labels and annotations are there", func() string {
				got := s.copied()
				return cmp.Diff(want, got.Labels) + cmp.Diff(copied.Annotations, got.Annotations)
			})
			if got := s.copied(); got.UID != copied.UID {
				t.Error("the copy was replaced")
			}
			s.synced(s.cluster)
		})
	}
}

func TestOthersLabelsOnACopyStay(t *testing.T) {
	s := newScene(t)
	apitest.Edit(s.world, s.copied(), func(c *corev1.Secret) { c.Labels["theirs"] = "x"; c.Annotations["theirs"] = "y" })
	s.token = s.Rotate(s.account)
	got := s.copied()
	if got.Labels["theirs"] != "x" || got.Annotations["theirs"] != "y" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
}

func TestNothingForeignIsTouched(t *testing.T) {
	for name, theirs := range map[string]*corev1.Secret{
		"without labels": {},
		"with the mark": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"app.kubernetes.io/managed-by": "cluster-inventory-addon"}}},
		"with our labels": {ObjectMeta: metav1.ObjectMeta{Labels: target.Labels()}},
		"with our labels, naming another account": {ObjectMeta: metav1.ObjectMeta{Labels: target.Labels(), Annotations: map[string]string{
			"inventory.open-cluster-management.io/source-cluster": "x",
			"inventory.open-cluster-management.io/source-account": "y"}}},
		"immutable": {Immutable: ptr.To(true)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			team := s.world.team()
			theirs = theirs.DeepCopy()
			theirs.Namespace, theirs.Name, theirs.Data = team, s.cluster+"-reader", map[string][]byte{"token": []byte("theirs")}
			s.MustCreate(theirs)
			s.publish(team, s.cluster)
			apitest.Edit(s.world, s.account,
				func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + team })
			s.says(s.cluster, "False", "ForeignSecret", "Account reader is not copied in "+team+": the Secret "+s.cluster+"-reader there was not created by this addon and is left alone; delete or rename it.")
			s.token = s.Rotate(s.account)
			s.copied()
			apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
			s.hasNoCopy(s.team, s.cluster, "reader")
			s.bound(team, targetRole, false)
			got := s.world.copied(team, s.cluster, "reader")
			if diff := cmp.Diff(theirs, got, cmpopts.IgnoreFields(corev1.Secret{}, "TypeMeta")); diff != "" {
				t.Errorf("their Secret (-before +after):\n%s", diff)
			}
		})
	}
}

// The chart's policy recognizes a copy by its marks, so the manager could write it no more, and would keep its
// rights for that forever.
func TestACopyWithoutAnyMarkIsLeftAlone(t *testing.T) {
	s := newScene(t)
	s.followed(s.team)
	copied := s.copied()
	s.MustMerge(copied.DeepCopy(),
		`{"metadata":{"labels":null,"annotations":null,"ownerReferences":null,"managedFields":[{}]}}`)
	s.mentions(s.cluster, "ForeignSecret", s.team)
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.bound(s.team, targetRole, false)
	if got := s.copied(); got.UID != copied.UID {
		t.Error("the Secret was replaced")
	}
}

func TestDeletedForeignSecretMakesRoom(t *testing.T) {
	s := newScene(t)
	team := s.world.team()
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: s.cluster + "-reader"}}
	s.MustCreate(theirs)
	s.publish(team, s.cluster)
	apitest.Edit(s.world, s.account,
		func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + team })
	s.mentions(s.cluster, "ForeignSecret", team)
	s.MustDelete(theirs)
	s.creds.enqueuePair(types.NamespacedName{Namespace: team, Name: s.cluster}) // as the next look does
	s.holds(team, s.cluster, "reader", s.token)
}

// TestACopyIsNotReplacedWhileItMayNotBeCreated: a copy that cannot be changed is deleted and created again,
// and would be missing if it must not be created.
func TestACopyIsNotReplacedWhileItMayNotBeCreated(t *testing.T) {
	for name, forbid := range map[string]func(*scene){
		"its selection is unknown": func(s *scene) {
			s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.Unknown, Why: "is in a set that cannot be read"})
		},
		"the caches lag": func(s *scene) { s.rule.lag(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settled()
			copied := s.copied()
			forbid(s)
			s.wire.Reset()
			apitest.Edit(s.world, copied, func(c *corev1.Secret) { c.Immutable = ptr.To(true); c.Data["token"] = []byte("x") })
			s.Eventually("the copy is read", func() string {
				for _, call := range s.wire.Calls() {
					if call.Method == http.MethodGet && strings.HasSuffix(call.Path, "/"+s.team+"/secrets/"+copied.Name) {
						return ""
					}
				}
				return "it is not"
			})
			s.Stays(quietly, "the copy stays", func() string {
				if got := s.world.copied(s.team, s.cluster, "reader"); got == nil || got.UID != copied.UID {
					return fmt.Sprintf("there is %v", got)
				}
				return ""
			})
			s.rule.lag(false)
			s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.Yes})
			if got := s.copied(); got.UID == copied.UID {
				t.Error("it is not another Secret")
			}
			s.settled()
		})
	}
}
