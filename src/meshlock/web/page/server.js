// How the page reaches what answers it: over HTTP, or, where there is no server, Python in this tab.

const place = document.documentElement.dataset.python; // of a page that brings its own Python

export const tab = place ? (await import("./tab.js")).tab(place) : null;

// As fetch() does: paths begin with /api/.
export const call = (path, options) => (tab ? tab.call(path, options) : fetch(path, options));
