// Package options compares every option of nova that is generated, by the operators
// and by the role edpm_nova, with the options that nova itself has in the images of each
// supported release. It needs root and podman, and is skipped with -short.
//
// It also has nova of each release open consoles of QEMU there, by what is generated for them, and connects to libvirt
// and QEMU there with certificates of live migration.
//
// The settings of libvirt's daemons are not nova's: the role edpm_libvirt starts each
// daemon with them before it uses them.
package options
