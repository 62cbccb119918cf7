// How large the type is, and whether the page is being presented; this browser remembers both.

const SIZES = [0.85, 1, 1.15, 1.3, 1.5, 1.75, 2];
const SIZE = "meshlock-type";
const LECTURE = "meshlock-lecture";
const root = document.documentElement;

const chosen = () => Number(localStorage.getItem(SIZE)) || 1;

export const presenting = () => root.classList.contains("lecture");

// Apply what is remembered; `changed` is called whenever it is another.
export function type(changed = () => {}) {
  const apply = () => {
    root.classList.toggle("lecture", localStorage.getItem(LECTURE) === "yes");
    root.style.setProperty("--type", String(chosen() * (presenting() ? 1.4 : 1)));
    changed();
  };
  apply();
  return {
    by(steps) {
      const place = SIZES.findIndex((size) => size >= chosen() - 0.01);
      localStorage.setItem(SIZE, String(SIZES[Math.min(Math.max(place + steps, 0), SIZES.length - 1)]));
      apply();
    },
    present(on) {
      localStorage.setItem(LECTURE, on ? "yes" : "no");
      apply();
    },
  };
}

// By how much text is larger than usual, for what is drawn.
export const scale = () => parseFloat(getComputedStyle(root).fontSize) / 16;
