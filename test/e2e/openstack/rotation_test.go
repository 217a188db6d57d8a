package openstack

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// rotationStories replace each credential by another one, and revoke it, while guests are created
// and deleted.
func rotationStories() {
	It("changes the user of a message bus, which is then deleted", func(ctx SpecContext) {
		former, url := busOf(ctx)
		run(ctx, "rabbitmqctl add_user nova-2 rotated-bus && rabbitmqctl set_permissions -p cell1 nova-2 '.*' '.*' '.*'")
		data := map[string]string{"transport_url": withUser(url, "nova-2", "rotated-bus")}
		if quorum := former.Data["quorumqueues"]; quorum != nil {
			data["quorumqueues"] = string(quorum)
		}
		create(ctx, secret("cell1-bus-2", data))
		rotate(ctx, func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.CellMessageBusSecretName = "cell1-bus-2"
			n.Spec.CellTemplates["cell1"] = t
		}, former, func() {
			// The user of before has other cells too: it loses this one.
			run(ctx, "rabbitmqctl clear_permissions -p cell1 "+userOf(url))
		})
	}, SpecTimeout(25*time.Minute))

	It("changes the users of all databases", func(ctx SpecContext) {
		former := passwords(ctx)
		var grants strings.Builder
		for _, database := range []string{"nova_api", "nova_cell0", "nova_cell1", "nova_cell2"} {
			fmt.Fprintf(&grants, "GRANT ALL ON %s.* TO 'nova_2'@'%%'; ", database)
		}
		run(ctx, `mysql -e "CREATE USER 'nova_2'@'%' IDENTIFIED BY 'rotated-database'; `+grants.String()+`"`)
		create(ctx, another(former, "osp-secret-2", map[string]string{"NovaAPIDatabasePassword": "rotated-database", "NovaCellDatabasePassword": "rotated-database"}))
		rotate(ctx, func(n *novav1.Nova) {
			n.Spec.Secret, n.Spec.APIDatabaseUser = "osp-secret-2", "nova_2"
			for name, t := range n.Spec.CellTemplates {
				t.CellDatabaseUser = "nova_2"
				n.Spec.CellTemplates[name] = t
			}
		}, former, func() {
			run(ctx, `mysql -N -e "SELECT CONCAT('DROP USER ', QUOTE(user), '@', QUOTE(host), ';') FROM mysql.user WHERE user = 'nova'" | mysql`)
		})
	}, SpecTimeout(25*time.Minute))

	It("changes the service user, which is then disabled", func(ctx SpecContext) {
		former := passwords(ctx)
		openstack(ctx, "user", "create", "--domain", "default", "--password", "rotated-user", "nova-2")
		for _, role := range []string{"admin", "service"} {
			openstack(ctx, "role", "add", "--user", "nova-2", "--project", "service", role)
		}
		create(ctx, another(former, "osp-secret-3", map[string]string{"NovaPassword": "rotated-user"}))
		rotate(ctx, func(n *novav1.Nova) { n.Spec.Secret, n.Spec.ServiceUser = "osp-secret-3", "nova-2" }, former, func() {
			openstack(ctx, "user", "set", "--disable", "nova")
		})
	}, SpecTimeout(25*time.Minute))
}

// rotate changes the Nova, deletes the former Secret, which is held, and revokes what is in it
// once all use the new one. Guests are created and deleted all the time, without an error.
func rotate(ctx context.Context, change func(*novav1.Nova), former *corev1.Secret, revoke func()) {
	GinkgoHelper()
	failures := keepCreating(ctx)
	obj := nova()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	before := obj.DeepCopy()
	change(obj)
	Expect(k8s.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
	Expect(k8s.Delete(ctx, former)).To(Succeed())
	Eventually(rollout).WithArguments(ctx).WithTimeout(15 * time.Minute).Should(HavePrefix("True: "))
	Eventually(func() bool { return missing(ctx, former) }).WithTimeout(time.Minute).Should(BeTrue(), "Secret %s is released", former.Name)
	revoke()
	time.Sleep(90 * time.Second) // what still used it has reported and failed by then
	Expect(failures()).To(BeEmpty())
	Expect(hostsOfServices(ctx, "nova-compute")).To(HaveKeyWithValue(compute.Name, "up"))
}

// rollout is the condition ConfigRolledOut of the Nova, for its present spec.
func rollout(ctx context.Context) (string, error) {
	obj := nova()
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil || obj.Status.ObservedGeneration != obj.Generation {
		return "not observed yet", err
	}
	c := obj.Status.Conditions.Get(novav1.ConfigRolledOutCondition)
	if c == nil {
		return "none", nil
	}
	return string(c.Status) + ": " + c.Message, nil
}

// keepCreating creates a guest and deletes it once it runs, again and again, with two seconds in
// between, until the function that it returns is called, which returns what failed. There is one
// at a time: the quota of the stories allows few.
func keepCreating(ctx context.Context) (stop func() []string) {
	background, cancel := context.WithCancel(ctx)
	var failures []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; background.Err() == nil; i++ {
			if err := createAndDelete(ctx, fmt.Sprintf("rotation-%d", i)); err != nil {
				failures = append(failures, err.Error())
			}
			time.Sleep(2 * time.Second)
		}
	}()
	return func() []string {
		cancel()
		<-ended
		return failures
	}
}

// createAndDelete returns why a guest does not run, or is not deleted.
func createAndDelete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"server", "create", "--os-compute-api-version", "2.74", "--image", "guest", "--flavor", "guest", "--nic", "none", "--host", compute.Name, "--wait", name},
		{"server", "delete", "--wait", name},
	} {
		if out, err := cluster.OpenStack(ctx, args...); err != nil {
			return fmt.Errorf("%s %s: %w: %s", strings.Join(args[:2], " "), name, err, out)
		}
	}
	return nil
}

// run runs a command on the controller.
func run(ctx context.Context, command string) {
	GinkgoHelper()
	out, err := controller.SSH(ctx, command)
	Expect(err).NotTo(HaveOccurred(), out)
}

// busOf is the Secret with the message bus of cell1, and its URL.
func busOf(ctx context.Context) (*corev1.Secret, string) {
	GinkgoHelper()
	s := bus()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
	return s, string(s.Data["transport_url"])
}

func withUser(transport, name, password string) string {
	GinkgoHelper()
	parsed, err := url.Parse(transport)
	Expect(err).NotTo(HaveOccurred())
	parsed.User = url.UserPassword(name, password)
	return parsed.String()
}

func userOf(transport string) string {
	GinkgoHelper()
	parsed, err := url.Parse(transport)
	Expect(err).NotTo(HaveOccurred())
	return parsed.User.Username()
}

// passwords is the Secret that the Nova names.
func passwords(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	obj := nova()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	s := &corev1.Secret{ObjectMeta: named(obj.Spec.Secret)}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
	return s
}

// another is a Secret with the content of one, but for some keys.
func another(former *corev1.Secret, name string, changes map[string]string) *corev1.Secret {
	data := map[string]string{}
	for key, value := range former.Data {
		data[key] = string(value)
	}
	for key, value := range changes {
		data[key] = value
	}
	return secret(name, data)
}
