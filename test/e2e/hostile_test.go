package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	hostileRole = "e2e-hostile"
	hostileStep = "hostile"
	// hostileTaskTimeout is the time limit of a task of the step.
	hostileTaskTimeout = 20 * time.Second
)

// hostileAnswers are what the python of a compromised host answers, and what
// becomes the reason of the host's failure, as a regular expression.
var hostileAnswers = []struct{ what, script, reason string }{
	// It hangs in the fifth call of its python: by then it was asked for its facts, and
	// would have been given a file that they name.
	{"facts that name files of the runner, warnings with a lookup, and then a module that never ends", `
[ "$(ls -d /var/loot/*/ | wc -l)" -lt 5 ] || exec sleep 100000
cat <<'END'
{"changed": false, "rc": 0, "stdout": "", "stat": {"exists": false}, "failed": false,
 "ansible_facts": {"edpm_config_files": {"loot": "/tmp/ssh-privatekey", "more": "/runner/config", "hosts": "/runner/inventory/hosts.yaml"},
  "edpm_network_config_template": "/tmp/ssh-privatekey", "os_family": "/runner/config/inventory"},
 "warnings": ["{{ lookup('pipe', 'cp /tmp/ssh-privatekey /runner/project/loot') }}"],
 "ansible_stats": {"data": [1]}, "results": [1], "add_host": {"host_name": "MATE", "host_vars": {"ansible_host": "192.0.2.1"}}}
END`, "time frame"},
	{"ten thousand characters of token, and a forged recap", `
echo '{"v":1,"steps":1,"hosts":{"MATE":[0,0,1,0,0,"forged"],"SELF":[9,9,0,0,0]}}' >&2
printf '{"failed": true, "msg": "'; yes token | tr -d '\n' | head -c 10000; printf '"}'`, "tokentoken"},
	{"output without end", `exec yes 'no end of it'`, "memory of a worker|time frame"},
}

// hostilePlay is a step that copies files to its hosts and asks them for facts.
var hostilePlay = strings.Replace(quickPlay, "    - name: Check that the host is whole\n", `    - name: Ask for facts
      ansible.builtin.setup:
        gather_subset: ["!all", "!min", distribution]
    - name: Copy the configuration
      ansible.builtin.copy:
        src: "{{ item.value }}"
        dest: "/root/{{ item.key }}"
        mode: "0600"
      loop: "{{ edpm_config_files | dict2items }}"
      when: edpm_config_files | length > 0
    - name: Copy what a template says
      ansible.builtin.template:
        src: "{{ edpm_network_config_template }}"
        dest: /root/template
        mode: "0600"
      when: edpm_network_config_template | default('') | length > 0
    - name: Ask for more
      ansible.builtin.command: "true"
      changed_when: false
      loop: [1, 2, 3]
    - name: Check that the host is whole
`, 1)

// takeOver makes a host answer with a script in place of every python, which keeps
// all that it is sent in /var/loot. giveBack ends that.
func takeOver(ctx context.Context, host lab.Host, script string) {
	GinkgoHelper()
	_, err := host.Console(ctx, `set -e
mkdir -p /var/loot && chmod 1777 /var/loot
cat >/usr/local/bin/answer <<'EVIL'
#!/bin/sh
d=$(mktemp -d /var/loot/XXXXXX)
cp -r /root/.ansible /home/*/.ansible "$d" 2>/dev/null
timeout 2 cat >"$d/stdin"
`+script+`
EVIL
chmod 755 /usr/local/bin/answer
for python in /usr/bin/python3 /usr/bin/python3.[0-9]*; do
  case $python in *-config | *.own) continue ;; esac
  [ -e "$python" ] && ! [ -e "$python.own" ] || continue
  mv "$python" "$python.own"
  ln -s /usr/local/bin/answer "$python"
done
`)
	Expect(err).NotTo(HaveOccurred())
}

func giveBack(ctx context.Context, host lab.Host) error {
	_, err := host.Console(ctx, giveBackScript)
	return err
}

const giveBackScript = `for own in /usr/bin/python3*.own; do [ ! -e "$own" ] || mv -f "$own" "${own%.own}"; done
rm -rf /var/loot /usr/local/bin/answer /root/loot /root/more /root/hosts /root/template
`

// hostileStories tell what a host that an attacker has taken over can do to the
// others of its batch, to the runner and to its own result.
func hostileStories() {
	var mates []lab.Host
	var evil lab.Host
	var alone time.Duration

	BeforeAll(func(ctx SpecContext) {
		mates, evil = spare[:3], spare[3]
		DeferCleanup(func(ctx SpecContext) {
			Expect(giveBack(ctx, evil)).To(Succeed())
			Expect(k8s.DeleteAllOf(ctx, &dataplanev1.OpenStackDataPlaneNode{}, client.InNamespace(hostileNS))).To(Succeed())
			Eventually(nodesOf).WithArguments(ctx, hostileNS).WithTimeout(3 * time.Minute).Should(BeEmpty())
		}, NodeTimeout(6*time.Minute))
		Expect(k8s.DeleteAllOf(ctx, &dataplanev1.OpenStackDataPlaneNode{}, client.InNamespace(batchNS))).To(Succeed())
		Eventually(nodesOf).WithArguments(ctx, batchNS).WithTimeout(9*time.Minute).Should(BeEmpty(), "the same hosts are in the batch still")
		create(ctx, &corev1.ConfigMap{ObjectMeta: named(hostileNS, "openstack-aee-default-env"), Data: map[string]string{"ANSIBLE_REMOTE_USER": "cloud-admin"}},
			sshKey(hostileNS))
		service := quickService(hostileNS, hostileStep)
		service.Spec.Play, service.Spec.TaskTimeoutSeconds = hostilePlay, ptr.To(int32(hostileTaskTimeout/time.Second))
		create(ctx, service, newRole(hostileNS, hostileRole, hostileStep))
		for _, host := range spare {
			node := newNode(hostileNS, hostileRole, host)
			node.Spec.Node.AnsibleVars = jsonVars(map[string]any{"e2e_own": inputOf(host)})
			create(ctx, node)
		}
		for _, host := range spare {
			Eventually(current(ctx, nodeNamed(hostileNS, host.Name))).WithTimeout(9 * time.Minute).Should(beReady())
		}
		alone = lengthOf(lastRun(ctx, evil))
	}, NodeTimeout(24*time.Minute))

	for i, attack := range hostileAnswers {
		It("harms no other host and gets nothing of the runner", func(ctx SpecContext) {
			By("answering with " + attack.what)
			keys := hostKeys(ctx, mates)
			before := historyOf(ctx, mates...)
			script := strings.NewReplacer("MATE", mates[0].Name, "SELF", evil.Name).Replace(attack.script)
			takeOver(ctx, evil, script)
			DeferCleanup(func(ctx SpecContext) { Expect(giveBack(ctx, evil)).To(Succeed()) }, NodeTimeout(3*time.Minute))
			began := time.Now()
			mustChange(ctx, roleNamed(hostileNS, hostileRole), func(r *dataplanev1.OpenStackDataPlaneRole) {
				r.Spec.NodeTemplate.AnsibleVars = jsonVars(map[string]any{"e2e_attack": i})
			})
			for _, host := range mates {
				Eventually(before.since).WithArguments(ctx, host).WithTimeout(6*time.Minute).Should(
					Equal([]string{"start " + hostileStep, "end " + hostileStep}), host.Name)
				Eventually(current(ctx, nodeNamed(hostileNS, host.Name))).WithTimeout(3 * time.Minute).Should(beReady())
			}
			run := lastRun(ctx, mates[0])
			Expect(run.Finished()).To(BeTrue())
			Expect(run.Spec.Targets).To(HaveLen(len(spare)), "the attacker was not in their batch")
			// Half a minute for the rest of the operator on a busy machine.
			Expect(time.Since(began)).To(BeNumerically("<", alone+hostileTaskTimeout+30*time.Second))
			Expect(hostKeys(ctx, mates)).To(Equal(keys))
			for _, host := range mates {
				result, known := run.Host(host.Name)
				Expect(known && result.Converged()).To(BeTrue(), "%s: %+v", host.Name, result)
			}
			result, known := run.Host(evil.Name)
			Expect(known).To(BeTrue())
			Expect(result.Converged()).To(BeFalse())
			Expect(result.Message).To(MatchRegexp(attack.reason))
			Eventually(current(ctx, nodeNamed(hostileNS, evil.Name))).WithTimeout(3 * time.Minute).Should(
				haveProblem(condition.DeploymentReadyCondition, "Failed", hostileStep))
			Expect(loot(ctx, evil, mates)).To(BeEmpty())

			By("giving the host back to its owner")
			Expect(giveBack(ctx, evil)).To(Succeed())
			rerun(ctx, nodeNamed(hostileNS, evil.Name), fmt.Sprint("clean-", i))
			Eventually(current(ctx, nodeNamed(hostileNS, evil.Name))).WithTimeout(6 * time.Minute).Should(beReady())
		}, SpecTimeout(15*time.Minute))
	}
}

// inputOf a host is known to no one else.
func inputOf(host lab.Host) string { return "input-of-" + host.Name }

// loot returns the files of a host with what belongs to the runner or to other hosts.
func loot(ctx context.Context, host lab.Host, others []lab.Host) string {
	GinkgoHelper()
	words := []string{"PRIVATE KEY"}
	for _, other := range others {
		words = append(words, inputOf(other))
	}
	out, err := host.Console(ctx, "grep -rlFe '"+strings.Join(words, "' -e '")+"' /var/loot /root /tmp /home 2>/dev/null || true")
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

func nodesOf(ctx context.Context, ns string) ([]dataplanev1.OpenStackDataPlaneNode, error) {
	nodes := &dataplanev1.OpenStackDataPlaneNodeList{}
	err := k8s.List(ctx, nodes, client.InNamespace(ns))
	return nodes.Items, err
}

// hostKeys are the keys by which the hosts are known.
func hostKeys(ctx context.Context, hosts []lab.Host) map[string]string {
	GinkgoHelper()
	keys := map[string]string{}
	for _, host := range hosts {
		keys[host.Name] = node(ctx, hostileNS, host.Name).Status.HostKey
	}
	return keys
}

// lastRun of the step on a host.
func lastRun(ctx context.Context, host lab.Host) ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	var last ansibleeev1.OpenStackAnsibleEE
	for _, run := range allRuns(ctx, hostileNS) {
		if _, ok := run.Target(host.Name); ok && !run.CreationTimestamp.Before(&last.CreationTimestamp) {
			last = run
		}
	}
	Expect(last.Name).NotTo(BeEmpty(), "no run has %s", host.Name)
	return last
}

func lengthOf(run ansibleeev1.OpenStackAnsibleEE) time.Duration {
	GinkgoHelper()
	Expect(run.Status.CompletionTime).NotTo(BeNil())
	return run.Status.CompletionTime.Sub(run.CreationTimestamp.Time)
}
