// Draw a place anew by changing what is there. The focus stays on its button, and a click counts even if
// its place was drawn anew between the press and the release.

// Elements with an id or a data-key are known by it; the others by their place among those without.
const known = (node) => (node.id || node.dataset?.key ? `${node.nodeName} ${node.id || node.dataset.key}` : undefined);

export function redraw(place, ...parts) {
  const wanted = new Set(parts.map(known));
  const kept = new Map();
  for (const old of [...place.childNodes]) {
    const name = known(old);
    if (name === undefined) continue;
    if (wanted.has(name) && !kept.has(name)) kept.set(name, old);
    else old.remove();
  }
  let next = place.firstChild;
  for (const part of parts) {
    const name = known(part);
    const made = typeof part === "string" ? document.createTextNode(part) : part;
    let here = name === undefined ? next : kept.get(name);
    if (here && here !== made && here.nodeName === made.nodeName && known(here) === name) change(here, made);
    else here = made;
    kept.delete(name);
    if (here === next) next = next.nextSibling;
    else place.insertBefore(here, next);
  }
  while (next) {
    const old = next;
    next = next.nextSibling;
    old.remove();
  }
}

// Make an element, or a text, what another one is.
function change(here, made) {
  if (made.nodeType === Node.TEXT_NODE) {
    if (here.data !== made.data) here.data = made.data;
    return;
  }
  for (const { name } of [...here.attributes]) if (!made.hasAttribute(name)) here.removeAttribute(name);
  for (const { name, value } of made.attributes) {
    if (here.getAttribute(name) === value) continue;
    if (name === "style") here.style.cssText = value; // the page's policy forbids the attribute
    else here.setAttribute(name, value);
  }
  here.onclick = made.onclick;
  here.onchange = made.onchange;
  redraw(here, ...made.childNodes);
  if (!made.matches("input, select")) return;
  if (here.value !== made.value) here.value = made.value;
  if ("checked" in made) here.checked = made.checked;
}
