// Let Pyodide pack what the laboratory imports: node pack.mjs PACKAGE WHEEL SOURCE LAB

import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packed, wheel, source, lab] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${packed}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${packed}/` });
for (const [name, folder] of Object.entries({ packed, wheels: dirname(wheel), source, lab, here: import.meta.dirname })) {
  python.FS.mkdirTree(`/${name}`);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, `/${name}`);
}
python.globals.set("WHEEL", `/wheels/${basename(wheel)}`);
await python.runPythonAsync(readFileSync(new URL("pack.py", import.meta.url), "utf8"));
