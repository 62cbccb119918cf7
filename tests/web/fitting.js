// What on this page overlaps, is cut off or sticks out, measured by boxes.
() => {
  const wide = document.documentElement.clientWidth;
  const wrong = [];
  if (document.documentElement.scrollWidth > wide) wrong.push('the page scrolls sideways');
  const words = (one) => (one.id ? '#' + one.id : one.textContent.trim().slice(0, 40));
  const parts = [];
  const clipped = (one) => {  // what can be seen of it, and how much is cut off at the sides
    let { left, right, top, bottom } = one.getBoundingClientRect();
    const full = right - left;
    for (let up = one.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflow === 'visible' || up === document.body) continue;
      const box = up.getBoundingClientRect();
      left = Math.max(left, box.left); right = Math.min(right, box.right);
      top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom);
    }
    return { left, right, top, bottom, lost: full - Math.max(right - left, 0) };
  };
  const readable = 'button, .button, select, input:not(.scrub), h1, h2, h3, th, td, p, .cell, .count, .chip, '
    + '#legend span, .key span, .code li, .code .name, #map text, #verdict span, dt, dd, label, .story, .pen, #people li, #where';
  const dialog = document.querySelector('dialog[open]');  // covers all else
  for (const one of (dialog ?? document).querySelectorAll(readable)) {
    if (!one.checkVisibility() || one.closest('.visually-hidden') || one.closest('dialog') !== dialog) continue;
    if (!one.textContent.trim() && !one.matches('button, select, input')) continue;
    const box = clipped(one);
    if (box.bottom - box.top < 2) continue;  // scrolled away, up or down
    if (box.lost > 1.5) wrong.push(`cut off: ${words(one)}`);
    if (box.left < -1 || box.right > wide + 1) wrong.push(`sticks out: ${words(one)}`);
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth && one.matches('button, th, td, p, .cell, .chip, h1'))
      wrong.push(`too narrow: ${words(one)}`);
    const nested = one.querySelector(readable) || one.matches('.code li');
    if (!nested) parts.push({ ...box, one, says: words(one) });
  }
  const stages = dialog ? [] : window.meshlock?.sides?.map((side) => side.stage) ?? [window.meshlock?.stage].filter(Boolean);
  for (const [canvas, seen, label] of stages.flatMap((stage) => stage.labels.map((label) => [stage.canvas.getBoundingClientRect(), clipped(stage.canvas), label]))) {
    if (canvas.top + label.top > seen.bottom - 2) continue;  // scrolled away
    const box = { left: canvas.left + label.left, right: canvas.left + label.right, top: canvas.top + label.top, bottom: canvas.top + label.bottom };
    if (box.left < canvas.left || box.right > canvas.right || box.top < canvas.top || box.bottom > canvas.bottom) wrong.push(`off the canvas: ${label.text}`);
    parts.push({ ...box, bottom: Math.min(box.bottom, seen.bottom), says: `drawn ${label.text}` });
  }
  for (let i = 0; i < parts.length; i += 1) for (let j = i + 1; j < parts.length; j += 1) {
    const [a, b] = [parts[i], parts[j]];
    if (a.one && b.one && (a.one.contains(b.one) || b.one.contains(a.one))) continue;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1.5 && down > 1.5) wrong.push(`${a.says} overlaps ${b.says}`);
  }
  for (const name of document.querySelectorAll('.code .name')) {
    const box = name.getBoundingClientRect();
    if (!name.checkVisibility() || box.bottom > window.innerHeight) continue;
    for (const x of [20, 40, 60]) {
      const top = document.elementFromPoint(box.left + x, box.top + 6);
      if (top?.closest('.code li')) wrong.push('lines of code paint over their header');
    }
  }
  return [...new Set(wrong)];
}
