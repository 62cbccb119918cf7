// A page that was saved as one file: what a server would answer is in the file itself.

const place = document.getElementById("answers");
const known = place && JSON.parse(place.textContent);

// The answer to this path, as a server would give it; null where there is a server.
export const alone = known && (async (path) => {
  const [what, asked] = path.split("?");
  if (what.endsWith("/find")) return { step: found(new URLSearchParams(asked)) };
  if (what.endsWith("/ran")) return (known[path] ?? []).map(([method, lit]) => ({ ...known.methods[method], lit }));
  const answer = known[path] ?? known[what];
  if (!answer) throw new Error("This file does not know that: it would take a server.");
  return answer;
});

if (known) document.documentElement.classList.add("alone");

// The next step, or the one before, of this kind and node.
function found(asked) {
  const kind = asked.get("kind");
  const node = Number(asked.get("node") ?? -1);
  const by = asked.has("back") ? -1 : 1;
  const { steps, window: width } = known["/api/runs/trace"];
  for (let step = Number(asked.get("after")) + by; step > 0 && step <= steps; step += by) {
    const number = Math.floor((step - 1) / width);
    const lines = known[`/api/runs/trace/window?number=${number}`].steps[step - 1 - number * width];
    const fits = kind === "enter" ? lines.some((line) => line.event === "enter") : (lines[0].message ? `${lines[0].event} ${lines[0].message}` : lines[0].event) === kind;
    if (fits && (node < 0 || lines[0].node === node)) return step;
  }
  return 0;
}
