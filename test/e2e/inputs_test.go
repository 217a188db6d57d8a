package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// wrongInput is one thing that a person can get wrong, on an object of its own.
type wrongInput struct {
	what string
	// role of the node; by default one with a single quick service.
	role string
	// spoil makes the node wrong; it can be right itself.
	spoil func(*dataplanev1.OpenStackDataPlaneNode)
	// of is what shows the problem: the node, unless this is set.
	of phase.Object
	// The condition that is False, why, and some words of its message.
	condition condition.Type
	reason    condition.Reason
	words     []string
	// fix corrects the mistake; without it there is no way but to start again.
	fix func(context.Context)
	// healed is what must become of it; by default it becomes Ready.
	healed func(phase.Object) bool
}

// object that shows the problem.
func (w *wrongInput) object() phase.Object {
	if w.of != nil {
		return w.of
	}
	return nodeNamed(inputsNS, w.name())
}

func (w *wrongInput) name() string { return strings.ReplaceAll(w.what, " ", "-") }

const quick = "quick"

func inputNode(ctx context.Context, name string, mutate func(*dataplanev1.OpenStackDataPlaneNode)) {
	mustChange(ctx, nodeNamed(inputsNS, name), mutate)
}

// accessMistakes are about how hosts are logged in to.
func accessMistakes() []wrongInput {
	key := func(secret string) func(*dataplanev1.OpenStackDataPlaneNode) {
		return func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleSSHPrivateKeySecret = secret }
	}
	rightKey := func(secret string) func(context.Context) {
		return func(ctx context.Context) {
			mustChange(ctx, secretNamed(inputsNS, secret), func(s *corev1.Secret) {
				s.Data = map[string][]byte{"ssh-privatekey": []byte(sshKey(inputsNS).StringData["ssh-privatekey"])}
			})
		}
	}
	unreachable, silent := dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason
	return []wrongInput{
		{
			what: "ssh refused", spoil: func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsiblePort = closedPort },
			condition: unreachable, reason: silent, words: []string{"refused"},
			fix: func(ctx context.Context) {
				inputNode(ctx, "ssh-refused", func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsiblePort = firstPort })
			},
		},
		{
			what: "wrong key", spoil: key("other-key"),
			condition: unreachable, reason: silent, words: []string{"Permission denied"}, fix: rightKey("other-key"),
		},
		{
			what: "garbage for a key", spoil: key("garbage-key"),
			condition: unreachable, reason: silent, words: []string{"ssh"}, fix: rightKey("garbage-key"),
		},
		{
			what: "no sudo", spoil: func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleUser = "e2e-nosudo" },
			condition: condition.DeploymentReadyCondition, reason: "Failed", words: []string{"sudo"},
			fix: func(ctx context.Context) {
				Expect(spare[0].Console(ctx, "echo 'e2e-nosudo ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/zz-e2e && chmod 440 /etc/sudoers.d/zz-e2e")).Error().NotTo(HaveOccurred())
			},
		},
		{
			what: "no secret with the key", spoil: key("later-key"),
			condition: condition.InputReadyCondition, reason: common.SecretMissingReason, words: []string{"later-key", "create it"},
			fix: func(ctx context.Context) {
				secret := sshKey(inputsNS)
				secret.Name = "later-key"
				create(ctx, secret)
			},
		},
		{
			what: "no key in the secret", spoil: key("empty-key"),
			condition: condition.InputReadyCondition, reason: common.SecretKeyMissingReason, words: []string{"empty-key", "ssh-privatekey"},
			fix: rightKey("empty-key"),
		},
	}
}

// dataPlaneMistakes are about roles and services.
func dataPlaneMistakes() []wrongInput {
	input := condition.InputReadyCondition
	return []wrongInput{
		{
			what: "no such role", role: "later-role",
			condition: input, reason: dataplanev1.RoleMissingReason, words: []string{"later-role"},
			fix: func(ctx context.Context) { create(ctx, newRole(inputsNS, "later-role", quick)) },
		},
		{
			what: "no such service", role: "with-later-service",
			condition: input, reason: dataplanev1.ServiceMissingReason, words: []string{"later-service"},
			fix: func(ctx context.Context) { create(ctx, quickService(inputsNS, "later-service")) },
		},
		{
			what: "no such configmap", role: "with-later-configmap",
			condition: input, reason: common.ConfigMapMissingReason, words: []string{"later-configmap"},
			fix: func(ctx context.Context) {
				create(ctx, &corev1.ConfigMap{ObjectMeta: named(inputsNS, "later-configmap"), Data: map[string]string{"a": "b"}})
			},
		},
		{
			what: "a play that fails", role: "with-broken-play",
			condition: condition.DeploymentReadyCondition, reason: "Failed", words: []string{"broken-play"},
			fix: func(ctx context.Context) {
				mustChange(ctx, &dataplanev1.OpenStackDataPlaneService{ObjectMeta: named(inputsNS, "broken-play")}, func(s *dataplanev1.OpenStackDataPlaneService) {
					s.Spec.Play = quickService(inputsNS, quick).Spec.Play
				})
			},
		},
		{
			what: "bare metal", role: "of-bare-metal",
			condition: dataplanev1.ProvisionReadyCondition, reason: dataplanev1.InvalidSpecReason, words: []string{"spec.baremetalSetTemplate.image is missing"},
			fix: func(ctx context.Context) {
				mustChange(ctx, roleNamed(inputsNS, "of-bare-metal"), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.PreProvisioned = ptr.To(true) })
			},
		},
	}
}

// cellMistakes are about cells. Nothing is deployed on these nodes: the cell is
// looked at first.
func cellMistakes() []wrongInput {
	hasCell := func(obj phase.Object) bool { return obj.GetConditions().IsTrue(novav1.NovaCellReadyCondition) }
	idle := func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = ptr.To(false) }
	bus := func(cell string) *corev1.Secret {
		return newSecretObject(inputsNS, busSecret(cell), map[string]string{"transport_url": transportURL(cell)})
	}
	return []wrongInput{
		{
			what: "no such cell", role: "in-cell9", spoil: idle, of: computeNamed(inputsNS, "no-such-cell"),
			condition: novav1.NovaCellReadyCondition, reason: novav1.CellMissingReason, words: []string{"nova-cell9"},
			fix: func(ctx context.Context) {
				create(ctx, bus("cell9"))
				mustChange(ctx, &novav1.Nova{ObjectMeta: named(inputsNS, novaName)}, func(n *novav1.Nova) {
					n.Spec.CellTemplates["cell9"] = novav1.NovaCellTemplate{HasAPIAccess: true}
				})
			},
			healed: hasCell,
		},
		{
			what: "cell not ready", role: "in-cell3", spoil: idle, of: computeNamed(inputsNS, "cell-not-ready"),
			condition: novav1.NovaCellReadyCondition, reason: novav1.CellNotReadyReason, words: []string{"nova-cell3"},
			fix:    func(ctx context.Context) { create(ctx, bus("cell3")) },
			healed: hasCell,
		},
		{
			what: "cell0", role: "in-cell0", spoil: idle, of: computeNamed(inputsNS, "cell0"),
			condition: novav1.NovaCellReadyCondition, reason: novav1.CellZeroReason, words: []string{"no computes"},
		},
	}
}

// runMistakes are about runs that people make themselves.
func runMistakes() []wrongInput {
	run := func(name string) *ansibleeev1.OpenStackAnsibleEE {
		return &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: named(inputsNS, name)}
	}
	return []wrongInput{
		{
			what: "bad inventory", of: run("bad-inventory"),
			condition: ansibleeev1.JobReadyCondition, reason: ansibleeev1.JobFailedReason, words: []string{"inventory cannot be read"},
			fix: func(ctx context.Context) {
				mustChange(ctx, run("bad-inventory"), func(r *ansibleeev1.OpenStackAnsibleEE) {
					r.Spec.Inventory = "[all]\nlocalhost ansible_connection=local\n"
				})
			},
		},
		{
			what: "no such playbook", of: run("no-such-playbook"),
			condition: ansibleeev1.JobReadyCondition, reason: ansibleeev1.JobFailedReason, words: []string{"playbook does not exist"},
			fix: func(ctx context.Context) {
				mustChange(ctx, run("no-such-playbook"), func(r *ansibleeev1.OpenStackAnsibleEE) {
					r.Spec.Playbook, r.Spec.PlaybookContents = "", pingPlay
				})
			},
		},
	}
}

const pingPlay = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n"

func makeInputs(ctx context.Context) {
	create(ctx, control(inputsNS)...)
	mustChange(ctx, &novav1.Nova{ObjectMeta: named(inputsNS, novaName)}, func(n *novav1.Nova) {
		n.Spec.CellTemplates["cell0"] = novav1.NovaCellTemplate{HasAPIAccess: true}
		n.Spec.CellTemplates["cell3"] = novav1.NovaCellTemplate{HasAPIAccess: true}
	})
	other, err := cluster.NewKey(ctx, artifact("other-key"))
	Expect(err).NotTo(HaveOccurred())
	notePrivateKey(other)
	create(ctx,
		newSecretObject(inputsNS, "other-key", map[string]string{"ssh-privatekey": other}),
		newSecretObject(inputsNS, "garbage-key", map[string]string{"ssh-privatekey": newSecret("garbage for an ssh key")}),
		newSecretObject(inputsNS, "empty-key", map[string]string{"ssh-privatekey": ""}),
		quickService(inputsNS, quick),
	)
	broken, needy := quickService(inputsNS, "broken-play"), quickService(inputsNS, "needy")
	broken.Spec.Play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - name: Call what is not there\n      ansible.builtin.command: /nowhere/at/all\n"
	needy.Spec.ConfigMaps = []string{"later-configmap"}
	create(ctx, broken, needy)
	bare := newRole(inputsNS, "of-bare-metal", quick)
	bare.Spec.BaremetalSetTemplate = &dataplanev1.BaremetalSetTemplate{BaremetalHosts: map[string]dataplanev1.BaremetalHost{"bare-metal": {}}}
	create(ctx, newRole(inputsNS, quick, quick), bare,
		newRole(inputsNS, "with-later-service", "later-service"),
		newRole(inputsNS, "with-later-configmap", "needy"),
		newRole(inputsNS, "with-broken-play", "broken-play"),
		inCell(newRole(inputsNS, "in-cell9", quick), "nova-cell9"),
		inCell(newRole(inputsNS, "in-cell3", quick), "nova-cell3"),
		inCell(newRole(inputsNS, "in-cell0", quick), "nova-cell0"),
	)
	create(ctx,
		&ansibleeev1.OpenStackAnsibleEE{ObjectMeta: named(inputsNS, "bad-inventory"), Spec: ansibleeev1.OpenStackAnsibleEESpec{
			// Not known to be wrong before Ansible reads it.
			PlaybookContents: pingPlay, Inventory: "[all\nlocalhost ansible_connection=local\n", BackoffLimit: ptr.To[int32](0),
		}},
		&ansibleeev1.OpenStackAnsibleEE{ObjectMeta: named(inputsNS, "no-such-playbook"), Spec: ansibleeev1.OpenStackAnsibleEESpec{
			Playbook: "edpm.operators.nowhere", Inventory: "[all]\nlocalhost ansible_connection=local\n", BackoffLimit: ptr.To[int32](0),
		}},
	)
}

// noSudo makes a user that can log in and do nothing more.
const noSudo = `id e2e-nosudo >/dev/null 2>&1 || useradd --create-home --shell /bin/bash e2e-nosudo
usermod --password '*' e2e-nosudo
install -d -m 700 -o e2e-nosudo /home/e2e-nosudo/.ssh
install -m 600 -o e2e-nosudo /root/.ssh/authorized_keys /home/e2e-nosudo/.ssh/authorized_keys`

// Ports of the sshds of manyMachines, and one on which no one listens.
const (
	firstPort  = 2201
	closedPort = 2200
)

// manyMachines makes one host answer as many: on each port with a key of its own.
const manyMachines = `mkdir -p /run/sshd /etc/ssh/e2e
for port in $(seq %d %d); do
  key=/etc/ssh/e2e/$port
  test -e $key || ssh-keygen -q -t ed25519 -N '' -f $key
  pgrep -f "sshd -p $port " >/dev/null || /usr/sbin/sshd -p $port -h $key
done`

// inputStories tell what a person gets to read who has given something wrong,
// and that fixing it is all there is to do. All mistakes are made at once.
func inputStories() {
	var mistakes []wrongInput

	BeforeAll(func(ctx SpecContext) {
		Expect(spare[0].Console(ctx, noSudo)).Error().NotTo(HaveOccurred())
		makeInputs(ctx)
		mistakes = append(append(append(accessMistakes(), dataPlaneMistakes()...), cellMistakes()...), runMistakes()...)
		Expect(spare[0].Console(ctx, fmt.Sprintf(manyMachines, firstPort, firstPort+len(mistakes)))).Error().NotTo(HaveOccurred())
		for i := range mistakes {
			w := &mistakes[i]
			if _, isRun := w.of.(*ansibleeev1.OpenStackAnsibleEE); isRun {
				continue
			}
			// Each node needs a machine, which is known by its port and host key.
			n := newNode(inputsNS, cmp.Or(w.role, quick), spare[0])
			n.Name, n.Spec.Node.AnsiblePort = w.name(), firstPort+int32(i)+1
			if w.spoil != nil {
				w.spoil(n)
			}
			create(ctx, n)
		}
	}, NodeTimeout(6*time.Minute))

	It("appear in a condition", func(ctx SpecContext) {
		for i := range mistakes {
			w := &mistakes[i]
			Eventually(current(ctx, w.object())).WithTimeout(6*time.Minute).Should(haveProblem(w.condition, w.reason, w.words...), w.what)
		}
	}, SpecTimeout(15*time.Minute))

	It("cause no load", func(ctx SpecContext) {
		before := reconciles(ctx)
		const window = 10 * time.Second
		time.Sleep(window)
		made := reconciles(ctx) - before
		AddReportEntry(fmt.Sprintf("%d reconciles in %v with %d mistakes", made, window, len(mistakes)))
		// Five of them are tried again now and then, each time with a run that starts and ends.
		Expect(made).To(BeNumerically("<", 150))
		for host, runs := range runsPerHost(ctx, inputsNS) {
			Expect(runs).To(BeNumerically("<=", 7), "%s is tried too often", host)
		}
	}, SpecTimeout(3*time.Minute))

	It("heal once they are fixed", func(ctx SpecContext) {
		for i := range mistakes {
			if mistakes[i].fix != nil {
				mistakes[i].fix(ctx)
			}
		}
		for i := range mistakes {
			w := &mistakes[i]
			switch {
			case w.fix == nil:
			case w.healed != nil:
				Eventually(current(ctx, w.object())).WithTimeout(3*time.Minute).Should(Satisfy(w.healed), w.what)
			default:
				Eventually(current(ctx, w.object())).WithTimeout(9*time.Minute).Should(beReady(), w.what)
			}
		}
	}, SpecTimeout(18*time.Minute))

	It("fail at once where admission can know", func(ctx SpecContext) {
		needPod()
		for what, write := range map[string]func(*dataplanev1.OpenStackDataPlaneNode){
			"spec.node.ansibleVars": func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Spec.Node.AnsibleVars = jsonVars(nil)
				n.Spec.Node.AnsibleVars.Raw = []byte(`"a: [1"`)
			},
			"spec.hostName":                    func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.HostName = "no such name" },
			"spec.deployStrategy.ansibleLimit": func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.AnsibleLimit = "~(" },
		} {
			Expect(change(ctx, nodeNamed(inputsNS, "ssh-refused"), write)).To(MatchError(ContainSubstring(what)), what)
		}
	}, SpecTimeout(3*time.Minute))

	It("let nodes be deleted", func(ctx SpecContext) {
		nodes := &dataplanev1.OpenStackDataPlaneNodeList{}
		Expect(k8s.DeleteAllOf(ctx, &dataplanev1.OpenStackDataPlaneNode{}, client.InNamespace(inputsNS))).To(Succeed())
		Eventually(func() ([]dataplanev1.OpenStackDataPlaneNode, error) {
			err := k8s.List(ctx, nodes, client.InNamespace(inputsNS))
			return nodes.Items, err
		}).WithTimeout(3 * time.Minute).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))
}

// reconciles is how often all controllers together have reconciled.
func reconciles(ctx context.Context) int {
	GinkgoHelper()
	text, err := manager.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(name, "controller_runtime_reconcile_total{") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		Expect(err).NotTo(HaveOccurred(), lines.Text())
		total += n
	}
	Expect(total).To(BeNumerically(">", 0), "the metrics do not tell")
	return int(total)
}

// runsPerHost counts the runs that each host of a namespace was in.
func runsPerHost(ctx context.Context, ns string) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for _, run := range allRuns(ctx, ns) {
		for _, t := range run.Spec.Targets {
			counts[t.Host]++
		}
	}
	return counts
}
