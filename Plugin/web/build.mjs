// Makes the scripts that attentionatlas writes into its pages: page.js and what it uses of vtk.js in one file, and
// that of the article.
//
//     npm ci && npm run build
//
// The result and the licenses of all packages in it are kept in git, so users need neither Node.js nor a network.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "python", "attentionatlas", "assets");

/** The text of a package's license: that of its file, or of the section of its README. */
function licenseOf(name, folder) {
  const entries = readdirSync(folder);
  const file = entries.find((entry) => /^(licen[sc]e|copying)/i.test(entry));
  if (file) return readFileSync(join(folder, file), "utf8").trim();
  const readme = entries.find((entry) => /^readme/i.test(entry));
  const section = readme && readFileSync(join(folder, readme), "utf8").match(/\nlicen[sc]e[^\n]*\n[-=]+\n([^]*?Permission is hereby granted[^]*?DEALINGS IN THE SOFTWARE\.)/i);
  if (!section) throw new Error(`${name}: expected a license file, found none.`);
  return section[1].trim();
}

const result = await build({
  absWorkingDir: here,
  entryPoints: { "page.min": "page.js", "article.min": "article/article.js" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16.4"],
  legalComments: "none",
  charset: "ascii",
  outdir: target,
  metafile: true,
});

// The packages that the result has parts of, with their licenses.
const parts = Object.assign({}, ...Object.values(result.metafile.outputs).map(({ inputs }) => inputs));
const packages = new Set();
for (const [path, { bytesInOutput }] of Object.entries(parts)) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found && bytesInOutput > 0) packages.add(found[1]);
}
// A hash of all that the result is made of, by which a test finds a result that is not of its sources.
const hash = createHash("sha256");
const isSource = (name) => name.endsWith(".js") || ["build.mjs", "package.json", "package-lock.json"].includes(name);
const inArticle = readdirSync(join(here, "article")).map((name) => `article/${name}`);
for (const name of [...readdirSync(here).sort(), ...inArticle.sort()].filter(isSource)) {
  hash.update(`${name}\n`).update(readFileSync(join(here, name)));
}
const sums = ["page.min.js", "article.min.js"].map((name) => createHash("sha256").update(readFileSync(join(target, name))).digest("hex"));
let text = `The file page.min.js contains parts of these packages; article.min.js of none.
SHA-256 of their sources: ${hash.digest("hex")}
SHA-256 of page.min.js: ${sums[0]}
SHA-256 of article.min.js: ${sums[1]}
`;
for (const name of [...packages].sort()) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  text += `\n---- ${name} ${version} (${license})\n\n${licenseOf(name, folder)}\n`;
}
writeFileSync(join(target, "page.min.js.LICENSES.txt"), text.replace(/[ \t\r]+$/gm, ""));
