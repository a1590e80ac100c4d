#!/bin/sh
# Installs the packages needed to build, test and run Attention Atlas on Debian 12. It is quick if
# they are already installed, and uses sudo only if it does not run as root.
set -eu

packages="
  cmake ninja-build g++ pkgconf
  paraview paraview-dev python3-paraview python3-pil python3-matplotlib python3-fonttools
  qtbase5-dev qttools5-dev qttools5-dev-tools libqt5svg5-dev
  qtxmlpatterns5-dev-tools libqt5sql5-sqlite
  libopenmpi-dev openmpi-bin
  libdouble-conversion-dev liblz4-dev liblzma-dev libutfcpp-dev
  libeigen3-dev libopenblas-dev nlohmann-json3-dev libqhull-dev libcxxopts-dev libhwy-dev
  libicu-dev libjpeg-dev libpcre2-dev libpng-dev libzip-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format clang-tidy
  xvfb xauth fonts-dejavu-core poppler-utils
"

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  exit 0
fi

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update
# shellcheck disable=SC2086 # the list is split into words
$sudo apt-get install -y --no-install-recommends $missing
