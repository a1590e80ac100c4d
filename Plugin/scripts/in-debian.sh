#!/usr/bin/env bash
# in-debian.sh RELEASE COMMAND...: runs a command in a copy of this checkout on another Debian.
#
#   Plugin/scripts/in-debian.sh 13 .ci/run
#   Plugin/scripts/in-debian.sh unstable sh -c 'Plugin/install-deps.sh && cmake --workflow --preset figures'
#
# RELEASE is 12, 13 or unstable, or a code name. The first call makes the release's root folder with
# debootstrap, in about a minute; later calls reuse it. The copy has the files that git tracks and
# new ones that it does not ignore. Its folder build stays from call to call; the first line printed
# says where. Mounts and processes end with the command.
#
#   ATLAS_DEBIAN_ROOTS   folder of the roots (default: ~/.cache/attention-atlas/debian)
#   ATLAS_DEBIAN_COPY    name of the copy in the root (default: attention-atlas); two commands that
#                        run at the same time need two names
#   ATLAS_DEBIAN_MIRROR  package archive (default: that of debootstrap)
#   CCACHE_DIR           folder of ccache, which the command finds under the same name (default: none)
#
# A snapshot of unstable can be older than its Release file allows. That is said, and its packages are
# installed all the same.
#
# To start afresh, remove the release's folder. A root is made and entered with root's rights: the
# script uses sudo if it does not run as root.
set -euo pipefail

usage() {
  echo "usage: in-debian.sh RELEASE COMMAND..., where RELEASE is 12, 13 or unstable" >&2
  exit 2
}

[ $# -ge 2 ] || usage
case "$1" in
  12) release=bookworm ;;
  13) release=trixie ;;
  unstable) release=sid ;;
  [a-z]*) release=$1 ;;
  *) usage ;;
esac
shift

PATH=$PATH:/usr/sbin:/sbin
for tool in debootstrap git unshare; do
  if ! command -v "$tool" >/dev/null; then
    echo "in-debian.sh: the command $tool is missing; Debian's package util-linux has unshare," \
      "the others have packages of their names" >&2
    exit 1
  fi
done
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)

checkout=$(cd "$(dirname "$0")/../.." && pwd)
roots=${ATLAS_DEBIAN_ROOTS:-$HOME/.cache/attention-atlas/debian}
root=$roots/$release
copy=/src/${ATLAS_DEBIAN_COPY:-attention-atlas}

# The root appears under its name only when it is whole.
if ! [ -d "$root" ]; then
  mkdir -p "$roots"
  new=$(mktemp -d "$roots/new-$release.XXXXXX")
  trap '"${sudo[@]}" rm -rf "$new"' EXIT
  mirror=()
  [ -z "${ATLAS_DEBIAN_MIRROR:-}" ] || mirror=("$ATLAS_DEBIAN_MIRROR")
  "${sudo[@]}" debootstrap --variant=minbase --include=git,ca-certificates "$release" "$new" \
    "${mirror[@]}" >&2
  "${sudo[@]}" chmod 755 "$new"
  "${sudo[@]}" mv "$new" "$root"
  trap - EXIT
fi

# apt refuses an archive whose Release file has expired.
echo 'Acquire::Check-Valid-Until "false";' |
  "${sudo[@]}" tee "$root/etc/apt/apt.conf.d/90valid-until" >/dev/null
until=$("${sudo[@]}" sh -c 'sed -n "s/^Valid-Until: //p" "$0"/var/lib/apt/lists/*Release' "$root" |
  sort -u | tail -n 1)
if [ -n "$until" ] && [ "$(date -d "$until" +%s)" -lt "$(date +%s)" ]; then
  echo "in-debian.sh: the Release file of $release expired on $until; its packages are used all the same" >&2
fi

# Files keep their times, so that what did not change is not built again. Those that differ from the last
# copy get the time of now: they may be older than what was built from that copy.
echo "in-debian.sh: $release, copy $root$copy" >&2
"${sudo[@]}" rm -rf "$root$copy.new"
"${sudo[@]}" mkdir -p "$root$copy" "$root$copy.new"
cd "$checkout"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do
    if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
  done |
  tar -c --null --files-from=- |
  "${sudo[@]}" tar -x -C "$root$copy.new" --no-same-owner
"${sudo[@]}" bash -c '
  set -euo pipefail
  cd "$1.new"
  find . -type f -print0 | while IFS= read -r -d "" file; do
    if [ -f "$1/$file" ] && ! cmp -s "$file" "$1/$file"; then touch "$file"; fi
  done
  find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  find . -mindepth 1 -maxdepth 1 -exec mv {} "$1" \;
  rmdir "$1.new"' bash "$root$copy"

# A mount and a process namespace of its own: nothing stays mounted or running, whatever happens.
# Temporary files are its own too: process numbers, by which Open MPI names its folders, begin anew
# with each command, so that two at a time would meet there.
enter='
  set -eu
  root=$1 copy=$2
  shift 2
  mount --make-rprivate /
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mkdir -p "$root$TMPDIR"
  mount -t tmpfs tmpfs "$root$TMPDIR"
  if [ -d "${CCACHE_DIR:-}" ]; then
    mkdir -p "$root$CCACHE_DIR"
    mount --bind "$CCACHE_DIR" "$root$CCACHE_DIR"
  fi
  cat /etc/resolv.conf >"$root/etc/resolv.conf"
  cat /etc/hosts >"$root/etc/hosts"
  exec chroot "$root" sh -c "cd \"\$1\" && shift && exec \"\$@\"" sh "$copy" "$@"'
exec "${sudo[@]}" unshare --mount --pid --fork --kill-child \
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
  TMPDIR=/tmp/in-debian ${CCACHE_DIR:+CCACHE_DIR="$CCACHE_DIR"} \
  ${TERM:+TERM="$TERM"} ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
  sh -c "$enter" sh "$root" "$copy" "$@"
