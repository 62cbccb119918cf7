// Where to draw nodes that have no place of their own. The same network always gets the same picture.

export function layout(size, links) {
  const near = Array.from({ length: size }, () => []);
  let pairs = [];
  for (const link of links) {
    const [one, other] = link.split("-").map(Number);
    if (one < size && other < size) {
      near[one].push(other);
      near[other].push(one);
      pairs.push([one, other]);
    }
  }
  if (pairs.length === 0 || pairs.length * 2 >= size * (size - 1) * 0.8) return circle(size);
  if (near.every((others) => others.length === 2) && distances(near, 0).every((d) => d >= 0)) return ring(near);
  const deep = distances(near, 0);
  if (pairs.length === size - 1 && deep.every((d) => d >= 0)) {
    if (near.every((others) => others.length <= 2)) return line(near);
    return tree(near);
  }
  return grid(size, new Set(links)) ?? springs(near, pairs);
}

// Rows and columns, if that is what the links are.
function grid(size, links) {
  for (let wide = 2; wide <= size / 2; wide += 1) {
    const high = size / wide;
    if (!Number.isInteger(high) || links.size !== high * (wide - 1) + wide * (high - 1)) continue;
    let fits = true;
    for (let i = 0; i < size && fits; i += 1) {
      if ((i + 1) % wide && !links.has(`${i}-${i + 1}`)) fits = false;
      if (i + wide < size && !links.has(`${i}-${i + wide}`)) fits = false;
    }
    if (!fits) continue;
    return Array.from({ length: size }, (_, i) => {
      const across = i % wide;
      const down = Math.floor(i / wide);
      return wide >= high ? { x: across * 1.5, y: down } : { x: down * 1.5, y: across };
    });
  }
  return null;
}

function circle(size) {
  return Array.from({ length: size }, (_, i) => {
    const angle = (2 * Math.PI * i) / size - Math.PI / 2;
    return { x: Math.cos(angle), y: Math.sin(angle) };
  });
}

function ring(near) {
  const order = [0];
  let before = -1;
  let here = 0;
  while (order.length < near.length) {
    const next = near[here].find((other) => other !== before && (other !== 0 || order.length === near.length));
    before = here;
    here = next;
    order.push(here);
  }
  const places = circle(near.length);
  const at = [];
  order.forEach((node, place) => { at[node] = places[place]; });
  return at;
}

function line(near) {
  const start = near.findIndex((others) => others.length === 1);
  const far = distances(near, start);
  const count = near.length;
  return far.map((d) => ({ x: d, y: count > 3 ? Math.sin((d / (count - 1)) * Math.PI * 2) * count * 0.07 : 0 }));
}

function tree(near) {
  const at = near.map(() => ({ x: 0, y: 0 }));
  let column = 0;
  const place = (node, father, depth) => {
    const children = near[node].filter((other) => other !== father);
    at[node].y = depth;
    if (children.length === 0) {
      at[node].x = column;
      column += 1;
      return;
    }
    for (const child of children) place(child, node, depth + 1);
    at[node].x = (at[children[0]].x + at[children.at(-1)].x) / 2;
  };
  place(0, -1, 0);
  const depth = Math.max(...at.map((p) => p.y), 1);
  const stretch = Math.max(column - 1, 1) / depth / 1.7;
  for (const p of at) p.y *= stretch;
  return at;
}

function distances(near, from) {
  const far = near.map(() => -1);
  far[from] = 0;
  const line = [from];
  for (let i = 0; i < line.length; i += 1) {
    for (const other of near[line[i]]) {
      if (far[other] < 0) {
        far[other] = far[line[i]] + 1;
        line.push(other);
      }
    }
  }
  return far;
}

// Distances from two far-apart nodes give a first picture; springs and mutual repulsion smooth it.
function springs(near, pairs) {
  const size = near.length;
  const first = distances(near, 0);
  const a = first.indexOf(Math.max(...first));
  const fromA = distances(near, a);
  const b = fromA.indexOf(Math.max(...fromA));
  const fromB = distances(near, b);
  let c = 0;
  let best = -Infinity;
  for (let i = 0; i < size; i += 1) {
    const score = Math.min(fromA[i], fromB[i]) - Math.abs(fromA[i] - fromB[i]) * 0.5;
    if (score > best) { best = score; c = i; }
  }
  const fromC = distances(near, c);
  const x = new Float64Array(size);
  const y = new Float64Array(size);
  for (let i = 0; i < size; i += 1) {
    const turn = i * 2.399963;
    x[i] = (fromA[i] - fromB[i]) / 2 + 0.3 * Math.cos(turn);
    y[i] = fromC[i] - (fromA[i] + fromB[i]) / 4 + 0.3 * Math.sin(turn);
  }
  const rounds = size > 1500 ? 40 : size > 400 ? 90 : 260;
  const reach = 3;
  const stiff = size > 250 ? 0.16 : 0.5; // in a crowd links may be longer
  for (let round = 0; round < rounds; round += 1) {
    const heat = 0.35 * (1 - round / rounds) + 0.01;
    const fx = new Float64Array(size);
    const fy = new Float64Array(size);
    const boxes = new Map();
    for (let i = 0; i < size; i += 1) {
      const key = Math.floor(x[i] / reach) * 100003 + Math.floor(y[i] / reach);
      const box = boxes.get(key);
      if (box) box.push(i);
      else boxes.set(key, [i]);
    }
    for (const [key, box] of boxes) {
      for (const step of [0, 1, 100002, 100003, 100004]) {
        const others = boxes.get(key + step);
        if (!others) continue;
        for (const i of box) {
          for (const j of others) {
            if (step === 0 && j <= i) continue;
            let dx = x[i] - x[j];
            let dy = y[i] - y[j];
            const d2 = dx * dx + dy * dy + 0.01;
            if (d2 > reach * reach) continue;
            const push = 0.9 / d2 - 0.09;
            dx *= push;
            dy *= push;
            fx[i] += dx; fy[i] += dy; fx[j] -= dx; fy[j] -= dy;
          }
        }
      }
    }
    for (const [i, j] of pairs) {
      const dx = x[j] - x[i];
      const dy = y[j] - y[i];
      const d = Math.sqrt(dx * dx + dy * dy) + 0.001;
      const pull = (stiff * (d - 1)) / d;
      fx[i] += dx * pull; fy[i] += dy * pull; fx[j] -= dx * pull; fy[j] -= dy * pull;
    }
    for (let i = 0; i < size; i += 1) {
      const f = Math.sqrt(fx[i] * fx[i] + fy[i] * fy[i]) + 1e-9;
      const go = Math.min(f, 1) * heat / f;
      x[i] += fx[i] * go * 3;
      y[i] += fy[i] * go * 3;
    }
  }
  return turned(Array.from({ length: size }, (_, i) => ({ x: x[i], y: y[i] })));
}

// The longer way lies flat, since pictures are wider than high.
function turned(at) {
  const size = at.length;
  const mx = at.reduce((sum, p) => sum + p.x, 0) / size;
  const my = at.reduce((sum, p) => sum + p.y, 0) / size;
  let xx = 0;
  let yy = 0;
  let xy = 0;
  for (const p of at) {
    xx += (p.x - mx) ** 2;
    yy += (p.y - my) ** 2;
    xy += (p.x - mx) * (p.y - my);
  }
  const angle = -0.5 * Math.atan2(2 * xy, xx - yy);
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  return at.map((p) => ({ x: (p.x - mx) * cos - (p.y - my) * sin, y: (p.x - mx) * sin + (p.y - my) * cos }));
}
