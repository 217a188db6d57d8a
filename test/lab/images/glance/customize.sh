#!/bin/sh
# Finishes the root file system of the glance image. $1 is its directory.
set -eu
root=$1

# The configuration comes from the operator alone: no file of the packages may
# add to it. What is left, such as the pipelines of glance-api-paste.ini, is read
# by whatever user the pod runs as.
for file in "$root"/etc/glance/*.conf; do : > "$file"; done
chmod -R a+rX "$root/etc/glance"

# Each pod has its own state.
rm -rf "$root"/var/lib/glance/* "$root"/var/log/* "$root"/etc/machine-id
: > "$root/etc/machine-id"
