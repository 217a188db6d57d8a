#!/bin/sh
# Makes a mirror of installed Debian packages in a directory of the host, removes the packages, and
# has apt use the mirror.
#
#   mirror.sh PACKAGE...
set -eu
mirror=/srv/mirror
for package; do
  root=$mirror/root
  mkdir -p "$root/DEBIAN"
  dpkg-query --status "$package" | sed '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}; /^Status:/d' >"$root/DEBIAN/control"
  # The image of the host leaves out documentation. Directories such as /bin can be links.
  dpkg-query --listfiles "$package" | while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || echo "${file#/}"; done |
    tar --create --directory / --files-from - | tar --extract --directory "$root"
  dpkg-deb --root-owner-group --build "$root" "$mirror/$package.deb" >/dev/null
  {
    cat "$root/DEBIAN/control"
    printf 'Filename: ./%s.deb\nSize: %s\nSHA256: %s\n\n' "$package" "$(stat --format %s "$mirror/$package.deb")" "$(sha256sum "$mirror/$package.deb" | cut -d ' ' -f 1)"
  } >>"$mirror/Packages"
  rm -rf "$root"
  dpkg --remove --force-depends "$package" >/dev/null 2>&1
done
echo "deb [trusted=yes] file:$mirror ./" >/etc/apt/sources.list.d/mirror.list
apt-get --quiet --quiet update
