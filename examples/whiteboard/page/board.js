// The board in the browser: shows what is drawn anywhere, and draws while it holds a pen.

const $ = (id) => document.getElementById(id);
const COLOURS = ["#d1495b", "#2457b3", "#1c7c54", "#c77700", "#7a4fb5", "#0b7d8c", "#a33a8b", "#5c6b2f"];
const key = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("-") + "-0123456789";
const colour = COLOURS[crypto.getRandomValues(new Uint8Array(1))[0] % COLOURS.length];
const name = new URLSearchParams(location.search).get("name") ?? `guest ${Math.floor(Math.random() * 90 + 10)}`;
const WIDTH = 1600; // of the board, in its own measure; its height is 1000
const HEIGHT = 1000;

const board = { strokes: [], people: new Map(), me: null, here: "", line: null, count: 3, key };
window.board = board;

const paper = $("paper");
const pen = paper.getContext("2d");

function element(kind, properties, ...children) {
  const made = document.createElement(kind);
  for (const [what, value] of Object.entries(properties)) what === "text" ? (made.textContent = value) : made.setAttribute(what, value);
  made.append(...children);
  return made;
}

async function act(action) {
  const answer = await fetch("/act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key, ...action }) });
  if (!answer.ok) $("says").textContent = (await answer.json()).error;
  return answer.ok;
}

// -- what is drawn ----------------------------------------------------------------------

function fit() {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  paper.width = paper.clientWidth * ratio;
  paper.height = paper.clientHeight * ratio;
  pen.setTransform(paper.width / WIDTH, 0, 0, paper.height / HEIGHT, 0, 0);
  pen.clearRect(0, 0, WIDTH, HEIGHT);
  for (const stroke of board.strokes) draw(stroke);
}

function draw({ points, colour: ink }) {
  pen.strokeStyle = /^#[0-9a-f]{6}$/.test(ink) ? ink : "#888888";
  pen.lineWidth = 5;
  pen.lineCap = "round";
  pen.lineJoin = "round";
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  if (points.length === 1) pen.lineTo(points[0][0] + 0.1, points[0][1]);
  pen.stroke();
}

// -- who holds pens -------------------------------------------------------------------------

function show() {
  const everybody = [...board.people].flatMap(([where, people]) => people.map((person) => ({ where, ...person })));
  board.me = everybody.find((person) => person.where === board.here && person.name === name && person.colour === colour) ?? null;
  const held = everybody.flatMap((person) => Array(person.pens).fill(person));
  board.held = held.length;
  const pens = [];
  for (let i = 0; i < Math.max(board.count, held.length); i += 1) {
    const cell = element("span", { class: held[i] ? "pen held" : "pen", text: held[i] ? held[i].name.slice(0, 8) : "free" });
    if (held[i]) {
      cell.style.background = held[i].colour;
      cell.style.borderColor = held[i].colour;
    }
    pens.push(cell);
  }
  $("pens").replaceChildren(...pens);
  $("pens").setAttribute("aria-label", `${held.length} of ${board.count} pens in use`);
  const mine = board.me?.pens ?? 0;
  const waits = board.me?.want ?? 0;
  paper.classList.toggle("mine", mine > 0);
  $("one").hidden = $("all").hidden = mine > 0 || waits > 0;
  $("put").hidden = !mine && !waits;
  $("put").textContent = mine ? "Put back" : "Give up";
  $("says").textContent = mine === board.count ? "You draw alone: all pens are yours." : mine ? "You hold a pen: draw." : waits ? `Waiting for ${waits === 1 ? "a pen" : `${waits} pens`} …` : "Take a pen to draw.";
  $("people").replaceChildren(...everybody.map((person) => {
    const spot = element("i", {});
    spot.style.background = person.colour;
    const state = person.pens ? `draws with ${person.pens}` : person.want ? `waits for ${person.want}${person.priority ? `, priority ${person.priority}` : ""}` : "watches";
    return element("li", {}, spot, `${person.name} (${person.where}) ${state}`);
  }));
}

const news = new EventSource(`/news?${new URLSearchParams({ key, name, colour })}`);
news.onmessage = ({ data }) => {
  const told = JSON.parse(data);
  if (told.hello) {
    board.here = told.hello;
    board.count = told.pens;
    board.strokes = [];
    board.people.clear();
    $("where").textContent = `board ${told.hello}`;
    document.title = `Whiteboard · ${told.hello}`;
    fit();
  } else if (told.people) board.people.set(told.board, told.people);
  else if (told.points) {
    board.strokes.push(told);
    draw(told);
  }
  if (!told.points) show();
};
news.onerror = () => { $("says").textContent = "The board does not answer; trying again …"; };

$("one").addEventListener("click", () => act({ do: "take", want: 1, priority: Number($("priority").value) }));
$("all").addEventListener("click", () => act({ do: "take", want: board.count, priority: Number($("priority").value) }));
$("put").addEventListener("click", () => act({ do: "put" }));

// -- drawing ----------------------------------------------------------------------------------

function spot(event) {
  const box = paper.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT];
}

function send() {
  if (board.line && board.line.length && board.me?.pens) act({ do: "draw", fence: board.me.fence, points: board.line });
  board.line = null;
}

paper.addEventListener("pointerdown", (event) => {
  if (!board.me?.pens) return;
  paper.setPointerCapture(event.pointerId);
  board.line = [spot(event)];
});
paper.addEventListener("pointermove", (event) => {
  if (!board.line) return;
  board.line.push(spot(event));
  draw({ points: board.line.slice(-2), colour });
  if (board.line.length >= 40) {
    const last = board.line.at(-1);
    send();
    board.line = [last];
  }
});
paper.addEventListener("pointerup", send);
paper.addEventListener("pointercancel", send);
window.addEventListener("resize", fit);
fit();
