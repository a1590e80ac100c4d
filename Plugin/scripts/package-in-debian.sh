#!/usr/bin/env bash
# package-in-debian.sh RELEASE OUTPUT [DEB]: makes the Debian package on a release of Debian, installs
# it on a fresh one of the same release and uses it there, without the source.
#
#   Plugin/scripts/package-in-debian.sh 13 build/package-13
#
# RELEASE is that of in-debian.sh, which has the variables that name folders. OUTPUT gets the
# package, the transcript and what the package drew. DEB is a package that is there already.
set -euo pipefail

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: package-in-debian.sh RELEASE OUTPUT [DEB]" >&2
  exit 2
fi
release=$1
mkdir -p "$2"
rm -f "$2/transcript"
output=$(cd "$2" && pwd)
scripts=$(cd "$(dirname "$0")" && pwd)
package=$output/attention-atlas.deb

if [ $# -eq 3 ]; then
  [ "$3" -ef "$package" ] || cp "$3" "$package"
else
  "$scripts/in-debian.sh" "$release" sh -c '{
    Plugin/install-deps.sh && rm -f build/package/*.deb && cmake --workflow --preset package
  } >&2 && cat build/package/attention-atlas_*.deb' >"$package.new" </dev/null
  mv "$package.new" "$package"
fi

# A root of its own, which ends with this script.
caches=${ATLAS_DEBIAN_ROOTS:-$HOME/.cache}
mkdir -p "$caches"
roots=$(mktemp -d "$caches/fresh-debian.XXXXXX")
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
trap '"${sudo[@]}" rm -rf "$roots"' EXIT
export ATLAS_DEBIAN_ROOTS=$roots ATLAS_DEBIAN_COPY=check
"$scripts/in-debian.sh" "$release" true </dev/null
# The package goes in by standard input, the results come out by standard output.
"$scripts/in-debian.sh" "$release" sh -c '
  set -e
  mkdir /root/check
  cat >/root/check/attention-atlas.deb
  cp Plugin/scripts/check-package.sh /root/check
  rm -rf "$PWD"/*
  cd /root/check
  { ./check-package.sh 2>&1 || true; } | tee transcript >&2 # its last line says whether it passed
  tar -c --exclude=attention-atlas.deb . ' <"$package" | tar -x -C "$output"
tail -n 1 "$output/transcript" | grep -qx "check-package.sh: passed"
