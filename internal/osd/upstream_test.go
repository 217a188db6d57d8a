package osd

// Where the unit cases of red-hat-storage/ocs-operator are that pin this behaviour
// (internal/controller/storagecluster, 64 cases), or why one is not here.
//
// cephcluster_test.go TestStorageClassDeviceSetCreation (7), ...ForArbiter (2):
//   - zone, rack and host failure domain; custom placement only, both placements,
//     custom placement with tolerations: TestDeviceSets. They differ in two points:
//     the mode SeedPhase1 is the default (ocs-operator has FailureDomain only), and a
//     custom placement alone leaves prepare Jobs their own constraints.
//   - cluster-wide encryption: StorageCluster has no encryption here. That of a
//     CephCluster survives: TestMergeDeviceSets.
//   - arbiter with replica 4 and 6: TestDeviceSetsBesideAnArbiter.
//
// placement_test.go TestGetPlacement (25):
//   - osd and prepareosd by default: TestConstraints. osd with an empty placement:
//     TestAnEmptyPlacementTakesTheConstraintsAway.
//   - a component with a label selector, for "all": TestPlacementOfAll. It differs:
//     a selector takes the place of the storage label, as it does for the choice of
//     the eligible nodes; ocs-operator asks for both, and then no OSD goes to nodes
//     that only the selector selects.
//   - mon, arbiter, rgw, mds, nfs, rbd-mirror, toolbox, noobaa-core, api-server and
//     metrics-exporter, by default, custom and empty: not produced here. What the
//     spec says of them is handed on (TestPlacementOfOtherDaemonsIsHandedOn), and
//     the merge that the custom cases pin is TestMerge.
//
// placement_test.go TestAppendUniqueTolerations (5): TestMergeTolerations.
//
// topology_test.go:
//   - TestReconcileNodeTopologyMap (4), TestNodeTopologyMapOnDifferentAZ (3):
//     TestTopologies. Only the stable labels count, which nodes have had since
//     Kubernetes 1.17.
//   - TestReconcileNodeTopologyMapFailure (2): TestMinNodes and the story of too few
//     nodes in test/storagecluster.
//   - TestFailureDomain (7): TestDomain.
//   - TestStorageClusterEligibleNodes (3): TestEligible.
//   - TestEnsureNodeRack (2), TestDeterminePlacementRack (4): TestRacks.
