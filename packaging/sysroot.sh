#!/bin/sh
# sysroot.sh ARCH DIR PACKAGE...: unpacks Debian's packages of another architecture, and all that they depend on, into
# a folder for cross builds. Needs neither root nor the machine's own list of packages: LLVM's of two architectures
# cannot be installed side by side.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -eu
arch=$1 root=$2
shift 2
root=$(mkdir -p "$root" && cd "$root" && pwd)
apt=$root/var/lib/sysroot # apt's own files, where the root has none
rm -f "$root/complete"
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
cat >"$apt/conf" <<END
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
END
export APT_CONFIG="$apt/conf"
apt-get -q update
apt-get -q install -y --download-only --no-install-recommends "$@"
for deb in "$apt"/archives/*.deb; do
    dpkg-deb -x "$deb" "$root"
done
# Links are meant from the root: those to libm.so.6, say.
find "$root" -type l -lname '/*' | while read -r link; do
    ln -sfn "$root$(readlink "$link")" "$link"
done
rm -rf "$apt"
printf '%s\n' "$@" >"$root/complete"
