#!/bin/sh
# install-deps.sh [--all] [--peers] [--vtk] [--wheel]: installs the packages needed to build, test and run
# Attention Atlas on Debian 12, 13 and unstable; with --all also those for the preset lint (static analysis,
# and npm for web pages) and for other releases of Debian (in-debian.sh); with --peers also the programs that
# the preset benchmark compares with, as far as the release has them, or from the Python registry into
# build/peers; with --vtk also VTK without ParaView for the preset vtk, whose packages go to
# build/vtk-packages where they conflict with ParaView's; with --wheel only those for wheel.sh, without
# ParaView. The release's own ParaView decides which Qt and which VTK are installed. It is quick if everything
# is already installed, and uses sudo only if it does not run as root.
set -eu

all="" peers="" vtk="" wheel="" analysis=""
for option in "$@"; do
  case "$option" in
    --all) all=yes ;;
    --peers) peers=yes ;;
    --vtk) vtk=yes ;;
    --wheel) wheel=yes ;;
    *)
      echo "usage: install-deps.sh [--all] [--peers] [--vtk] [--wheel]" >&2
      exit 2
      ;;
  esac
done

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
export DEBIAN_FRONTEND=noninteractive

# depends: what the release's package of ParaView depends on, empty if apt does not know it yet.
depends() {
  dpkg-query -W -f '${Depends}\n' paraview 2>/dev/null && return
  apt-cache show --no-all-versions paraview 2>/dev/null | sed -n 's/^Depends: //p'
}

updated=""
if [ -z "$(depends)" ]; then
  $sudo apt-get update
  updated=yes
fi

packages="
  cmake ninja-build g++ pkgconf dpkg-dev file python3-dev python3-venv
  libutfcpp-dev libeigen3-dev libopenblas-dev nlohmann-json3-dev libnanoflann-dev libqhull-dev libcxxopts-dev
  libhwy-dev libicu-dev libjpeg-dev libpcre2-dev libpng-dev libsndfile1-dev zlib1g-dev
"
if [ -n "$wheel" ]; then # and what Python's own source needs
  packages="$packages git ca-certificates curl libssl-dev libffi-dev libbz2-dev liblzma-dev"
else
  packages="$packages
    help2man paraview paraview-dev python3-paraview
    python3-pil python3-matplotlib python3-fonttools python3-pandas python3-markdown python3-pygments
    libopenmpi-dev openmpi-bin
    libdouble-conversion-dev liblz4-dev liblzma-dev libfontconfig-dev librsvg2-dev
    libgtest-dev libgmock-dev libbenchmark-dev
    xvfb xauth openbox fonts-dejavu-core poppler-utils chromium firefox-esr python3-websocket
  "
  case "$(depends)" in
    *libqt6*)
      packages="$packages qt6-base-dev qt6-5compat-dev qt6-svg-dev qt6-svg-plugins qt6-tools-dev
        qt6-tools-dev-tools qt6-documentation-tools libqt6sql6-sqlite"
      analysis="clang-format clang-tidy mypy"
      ;;
    *)
      packages="$packages qtbase5-dev libqt5svg5-dev qttools5-dev qttools5-dev-tools
        libqt5sql5-sqlite"
      analysis="clang-format-19 clang-tidy-19 mypy"
      ;;
  esac
  case "$(depends)" in
    *libvtk9*) packages="$packages libvtk9-dev libvtk9-qt-dev" ;; # ParaView built on the release's VTK
  esac
fi

# Gemmi was renamed after Debian 13, and in Debian 12 does not ask for the parser that it uses.
if apt-cache show libgemmi-dev >/dev/null 2>&1; then
  packages="$packages libgemmi-dev"
else
  packages="$packages gemmi-dev tao-pegtl-dev"
fi

if [ -n "$all" ]; then
  packages="$packages $analysis debootstrap"
  command -v npm >/dev/null || packages="$packages npm" # or that of another nodejs, which conflicts
fi

if [ -n "$peers" ]; then
  packages="$packages python3-venv"
  for package in python3-torch libsentencepiece-dev; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      packages="$packages $package"
    else
      echo "install-deps.sh: this release has no $package" >&2
    fi
  done
fi

# VTK's packages, if they cannot be installed beside ParaView's: what the libraries need is installed, and the
# packages are unpacked.
case "$packages" in *libvtk9-dev*) vtk="" ;; esac
if [ -n "$vtk" ]; then
  [ -n "$updated" ] || apt-cache show libvtk9-dev >/dev/null 2>&1 || { $sudo apt-get update && updated=yes; }
  vtk=$(apt-cache depends libvtk9-dev python3-vtk9 | sed -n 's/^ *Depends: \(libvtk9[.].*\)$/\1/p' | sort -u)
  packages="$packages libtbb-dev $vtk"
  vtk="$vtk libvtk9-dev python3-vtk9 vtk9"
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  [ -n "$updated" ] || $sudo apt-get update
  # shellcheck disable=SC2086 # the list is split into words
  $sudo apt-get install -y --no-install-recommends $missing
fi

if [ -n "$peers" ]; then
  peers=$(dirname "$0")/../build/peers
  [ -x "$peers/bin/pip" ] || python3 -m venv --clear --system-site-packages "$peers"
  "$peers/bin/pip" install --quiet openTSNE umap-learn scikit-learn ||
    echo "install-deps.sh: no openTSNE, umap-learn and scikit-learn from the Python registry" >&2
fi

folder=$(dirname "$0")/../build/vtk-packages
if [ -n "$vtk" ] && ! [ -f "$folder/ready" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  cd "$folder"
  # shellcheck disable=SC2086
  apt-get -o APT::Sandbox::User=root download $vtk
  for package in ./*.deb; do
    dpkg -x "$package" .
    rm "$package"
  done
  touch ready
fi
