package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("A manager without permissions for the Secrets of a namespace", func() {
	It("reports on each object how to grant them, runs nothing, and continues once they are granted", func() {
		w := newPlace()
		w.running = startManager(w.ns, w.opts)
		w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"),
			MakeSecret("cell1-password", w.ns, "ServicePassword", "p"), MakeSecret("cell1-bus", w.ns, "transport_url", "x"), MakeCell("cell1", w.ns).Obj(),
			MakeNova("nova", w.ns, "osp-secret"), MakeSecret("osp-secret", w.ns, "NovaPassword", "p"), MakeSecret("nova-bus", w.ns, "transport_url", "x"),
			w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		for _, object := range []judged{w.node("n"), w.compute("n"), MakeCell("cell1", w.ns).Obj(), MakeNova("nova", w.ns, "")} {
			w.halted(object, condition.InputReadyCondition, common.SecretForbiddenReason,
				"cannot be read", "no permissions for Secrets in namespace "+w.ns, "docs/install.md")
		}
		w.calm()
		Expect(w.runs()).To(BeEmpty())
		Expect(env.GrantSecrets(ctx, w.ns)).To(Succeed())
		w.computesReady("n")
		w.condition(MakeNova("nova", w.ns, ""), condition.InputReadyCondition, "True/Ready/")
		w.exactlyOnce()
	})
})

var _ = Describe("A Secret that many nodes share", func() {
	It("costs one request by its name, and a change of it reaches them all", func() {
		w := newCloud(func(o *controllers.Options) { o.Engine.Patience = 20 * time.Second })
		w.make(w.role("compute").Obj())
		names := w.makeNodes(30, "compute")
		w.nodesReady(names...)
		Expect(w.wire.secretReads("ssh-key")).To(HaveLen(1))
		w.setSecret("ssh-key", "ssh-privatekey", "")
		for _, n := range names {
			w.condition(w.node(n), condition.InputReadyCondition, "False/SecretKeyMissing/Warning")
		}
		w.setSecret("ssh-key", "ssh-privatekey", "key-1")
		w.nodesReady(names...)
		w.exactlyOnce()
		Expect(w.wire.secretReads("ssh-key")).To(HaveLen(1))
	})
})
