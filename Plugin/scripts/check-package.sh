#!/usr/bin/env bash
# check-package.sh: installs ./attention-atlas.deb with apt, uses what it installed, and removes it.
# It runs as root, on a Debian that is to be thrown away (package-in-debian.sh).
set -euxo pipefail
export DEBIAN_FRONTEND=noninteractive

# What is thrown away need not survive a power cut.
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe
apt-get -qq update
apt-get -y -o Dpkg::Use-Pty=0 install ./attention-atlas.deb >install.log
tail -n 3 install.log
dpkg-query -W attention-atlas paraview python3-paraview
dpkg --verify attention-atlas

# The Python package and the plugin, without any variable that names them.
pvpython -c "from attentionatlas import tour"
pvpython -c "from attentionatlas import plugin_path; print(plugin_path())"
cat >plugins.py <<'END'
from paraview import servermanager, simple

manager = servermanager.vtkSMProxyManager.GetProxyManager().GetPluginManager()
information = manager.GetLocalInformation()
plugins = {
    information.GetPluginName(i): (information.GetPluginFileName(i), information.GetPluginLoaded(i))
    for i in range(information.GetNumberOfPlugins())
}
print(plugins["AttentionAtlas"])
assert not plugins["AttentionAtlas"][1], "a plugin that is offered, not one that is always loaded"
simple.LoadDistributedPlugin("AttentionAtlas", ns=globals())
model = simple.OpenDataFile("/usr/share/attention-atlas/trained-n5-h3.safetensors")
torus = AttentionTorus(Input=model)
torus.UpdatePipeline()
print(torus.GetDataInformation().GetNumberOfPoints(), "points")
END
pvpython plugins.py

# The command, without any variable that would help it; it finds a display itself.
atlas() { env -i PATH="$PATH" HOME="$HOME" attention-atlas "$@"; }
data=/usr/share/attention-atlas
atlas figures "$data/trained-n5-h3.safetensors" --only class-map,deformed-torus -o figures
test -s figures/trained-n5-h3-class-map.png
test -s figures/trained-n5-h3-deformed-torus.png
atlas web "$data/trained-n5-h3.safetensors" -o page.html
atlas scene "$data/recordings/gpt2-data-visualization.safetensors" -o scene.pvsm
test -s page.html
test -s scene.pvsm
atlas record "$data/models/language-2" "In the beginning" -o run.safetensors
atlas figures run.safetensors --only sentence -o figures
test -s figures/run-sentence.png
atlas learn --task TokenPairs --steps 20 --checkpoint-every 10 -o run
atlas map run/step-20.safetensors --size 64 -o map.png
test -s map.png

# The documents, whose links need no network.
cat >documents.py <<'END'
import html, pathlib, re

folder = pathlib.Path("/usr/share/doc/attention-atlas/html")
pages = sorted(folder.glob("*.html"))
assert len(pages) > 15, pages
for page in pages:
    for link in re.findall(r'(?:src|href)="([^"#]+)', page.read_text(encoding="utf-8")):
        found = re.match("[a-z]+:", link) or (folder / html.unescape(link)).is_file()
        assert found, f"{page.name}: {link}"
print(len(pages), "pages")
END
python3 documents.py

# Its pages, and what bash completes.
apt-get -qq -y -o Dpkg::Use-Pty=0 install man-db >>install.log
for page in attention-atlas attention-atlas-figures attention-atlas-record attention-atlas-learn; do
  man -w "$page"
  warnings=$(man --warnings "$page" 2>&1 >/dev/null)
  test -z "$warnings"
done
(
  . /usr/share/bash-completion/completions/attention-atlas
  COMP_WORDS=(attention-atlas rec) COMP_CWORD=1
  _attention_atlas
  test "${COMPREPLY[*]}" = record
)

# The Plugin Manager of the GUI offers it: manager.png is to be looked at.
cat >manager.xml <<'END'
<?xml version="1.0" ?>
<pqevents>
  <pqevent object="pqClientMainWindow/menubar/menuTools" command="activate" arguments="actionManage_Plugins" />
</pqevents>
END
mkdir screen
mkfifo number
Xvfb -displayfd 3 -screen 0 1280x1024x24 -nolisten tcp -noreset -fbdir screen 3>number &
server=$!
read -r number <number # which the server chooses
DISPLAY=":$number" paraview --dr --test-script=manager.xml &
client=$!
sleep 90
cat >picture.py <<'END'
# Four bytes a pixel, after a header and a table of colors: the X window dump of Xvfb.
import struct

import numpy
from PIL import Image

with open("screen/Xvfb_screen0", "rb") as file:
    data = file.read()
header = struct.unpack(">25I", data[:100])
width, height, stride = header[4], header[5], header[12]
begin = header[0] + 12 * header[19]
pixels = numpy.frombuffer(data[begin : begin + height * stride], "u1").reshape(height, -1, 4)
Image.fromarray(numpy.ascontiguousarray(pixels[:, :width, 2::-1])).save("manager.png")
END
python3 picture.py
kill "$client" "$server"
wait "$client" "$server" || true
rm -r screen number

# Nothing stays, byte-compiled modules included.
apt-get -qq -y -o Dpkg::Use-Pty=0 purge attention-atlas >>install.log
for path in /usr/share/attention-atlas /usr/lib/python3/dist-packages/attentionatlas \
  /usr/lib/*/paraview-*/plugins/AttentionAtlas /usr/bin/paraview.conf \
  /usr/share/paraview/plugins/AttentionAtlas /usr/share/doc/attention-atlas; do
  if [ -e "$path" ] || [ -L "$path" ]; then
    echo "check-package.sh: $path is left over" >&2
    exit 1
  fi
done
set +x
echo "check-package.sh: passed"
